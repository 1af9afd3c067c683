"""The sinks of events: the log and a file of JSON lines, one event each.

Every event has a fixed `action`; the live view, the demo's result and the tests read the same lines.

action                     when
serving                    `leeward serve` without a name is ready: policies are loaded, it looks for topologies
settings_reloaded          its file has changed: changed (false: no setting has; true: services begin anew)
settings_refused           it has changed, and something is wrong: why; the last good ones stay in force
service_started            the service of one topology has read its settings
leading, standby           it holds the lock of the topology, or waits for it
leadership_lost            the lock went to another service
first_record               the topology had no control record; it has one now
taken_over                 it has read what the coordinator before it left
first_placement            Storm has placed it for the first time, after a plan was there: by_plan, else why not
plan_made                  a policy gave a plan: rates, service_rates, objective, response_s, cost_per_h, reason
plan_refused               the loop does not carry it out: why
cool_down                  a reconfiguration has just ended, and the policy is not asked: seconds
forecast                   the policy plans for other rates than measured: by, now, ahead (tuples/s of all sources)
plan_proposed              it waits for approval: plan (its number), deployment, reason, remedy
proposal_expired           it waits no more: plan, why
frozen, thawed             plans are not carried out, or are again: why, in a person's words, or why none can be read
reconfiguration_started    changes, reason, epoch, cut
phase                      MOVE or RESTORE begins
handover_step              epoch, steps: every task has passed so many, more follow
reconfiguration_ended      result, kind, changes, pause_s, phases, steps, bytes_exported, bytes_imported, clock_behind_s
                           (two leaders, the last one's clock behind: durations are not sure)
reconfiguration_undone     Storm could not have it so: why
reset                      a process was lost: why, cut
tasks_awaited              tasks that have sent no beat yet; the first checkpoint waits for them: tasks
tasks_heard                each task of a new topology has sent a beat
tasks_left_out             lost tasks that nobody waits for from here on: tasks
tasks_returned             tasks that were left out take part again: tasks
prepare_given_up           a warm task could not be brought in time: the tasks join again where they were: why
rejoin_ended               either of the two is over: result
restore_failed             a task cannot read the cut to restore: why; an older one is tried
fence_failed               Redis could not be told which epoch may write: why; tried again
rebalance_failed           Nimbus refused the placement or could not be asked: why
rebalance_again            Nimbus is asked once more
held                       no cut can be read: why, cuts, remedy
cut_chosen                 a person has decided from which cut a held topology goes on: cut
choice_refused             that decision cannot be carried out: why
checkpoint_committed       cut, bytes
checkpoint_failed          cut, why
drop_failed                old cuts and barriers could not be deleted: why; the next checkpoint tries again
alert                      a person should look
server_away, server_back   ZooKeeper or Nimbus does not answer while a topology is served, or does again: server, why
waiting                    a server, or the plugin, has not answered yet: why; the service tries again
topology_gone              Nimbus no longer runs the topology; its service ends, or had failed: topology_id, why
tidied                     what it left is deleted: znodes, keys, placement
service_failed             one topology is not served, as something is wrong with it or its settings: why
tidy_failed                some of it is left: why; `leeward tidy` deletes it
unprotected                others may read or write what a secrets file would protect: why
measure_failed             Redis did not give the measurements, or they cannot be: why; the rates stay as they were
clocks_off                 clocks of other nodes than before are off the datastore's: nodes (s ahead), why, remedy
state_outside              tuples change attributes beside self.state, or none of it is used: why, remedy
http_listens               the API answers under this url; acting: it has a token
asked                      a person left a request through the API: act, request
node_drains                a person lets this node become empty, through the API: node
node_undrained             it may be used again: node
measured                   what the monitor saw: rates, queues, replicas, response time
learnt                     a span of measurements is over: models (beside measurements), stores (nodes' links to the
                           DataStore), selectivities, handover, restarts
learnt_resumed             the leader goes on from what another one has learnt: age_s, number of curves, streams, ...
learnt_ignored             what another one has left cannot be gone on from: why
learnt_not_kept            what is learnt could not be recorded: why; tried again
cluster_seen               the nodes, components and streams that it is about; told again when the snapshot changes
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leeward.control.ports import Clock, EventSink

_LEVELS = {
    "alert": "error",
    "rebalance_failed": "warning",
    "fence_failed": "warning",
    "restore_failed": "warning",
    "checkpoint_failed": "warning",
    "reset": "warning",
    "tasks_left_out": "warning",
    "held": "error",
    "tidy_failed": "warning",
    "service_failed": "error",
    "settings_refused": "error",
    "unprotected": "warning",
    "state_outside": "warning",
    "server_away": "warning",
    "measure_failed": "warning",
    "clocks_off": "warning",
    "learnt_ignored": "warning",
    "learnt_not_kept": "warning",
    "measured": "debug",
    "learnt": "debug",
    "cluster_seen": "debug",
}


class JsonLines:
    """EventSink: appends to a file; a line is whole or not there."""

    def __init__(self, path: Path, clock: Clock) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._clock = clock

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        line = json.dumps({"t": round(self._clock.now(), 3), "action": action, **fields}, default=str)
        with contextlib.suppress(OSError, ValueError):  # a full disk must not stop the stream
            self._file.write(line + "\n")


class Log:
    """EventSink: structlog, JSON lines on standard error."""

    def __init__(self) -> None:
        import structlog

        self._log: Any = structlog.get_logger("leeward")

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        rest = {key: value for key, value in fields.items() if key != "event"}
        with contextlib.suppress(OSError, ValueError):
            getattr(self._log, _LEVELS.get(action, "info"))(action, **rest)


class Fan:
    """EventSink: passes events to several."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        for sink in self._sinks:
            sink.emit(action, fields)


def configure_logs(*, verbose: bool = False) -> None:
    """structlog to standard error as JSON lines with a fixed `action` key."""
    import logging
    import sys

    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.EventRenamer("action"),
            structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
