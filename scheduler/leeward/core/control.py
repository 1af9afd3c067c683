"""The control record: the one document by which coordinator and tasks agree on epoch, phase and tables.

It lives in ZooKeeper at `<root>/topologies/<topology id>/control`; the coordinator alone writes it, and sources watch
it. Markers carry it in their body; a task acts on whichever comes first. A record that no marker carries is also
written to `<topology id>/told`, which all other tasks watch: a switch or a checkpoint wakes only tasks with a part
in it.

Rules
- `epoch` grows with every reconfiguration, abort and reset; anything that names an older epoch is outdated.
- `base` is the epoch in which the state in the tasks' memories was established (0, or that of the last RESTORE).
  A process that did not take part in `base` may not go on in RUN: it asks for a reset.
- A *cut* is a consistent snapshot of all tasks, numbered upwards; it counts once it is in `committed`.
- A *handover* changes tables under RUN: the record has the new ones, a new epoch and the same base; a task owns by the
  old tables until the route markers of that epoch are in from every upstream task.
- A task can be *absent*: it owns no group, and nobody waits for its markers or reports. A warm task becomes absent at a
  route marker, so that Storm may move it; a task whose process is lost, or silent, becomes absent with a RESTORE, which
  gives its groups to others. It returns at a route marker. Before that `restarts` names it under RUN: all tasks then
  send calls on all channels, so that each knows that the channels from and to the returning tasks are up.

docs/protocol.md, which `scripts/protocol_page.py` prints, has fields, phases, barriers and znodes.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from leeward.core.errors import ProtocolError
from leeward.core.table import Table

RECORD_VERSION = 5
#: Begins the beat of a process that is about to end, or whose worker is silent.
GONE = "gone:"


class Phase(StrEnum):
    """The duty of the tasks of a topology."""

    RUN = "run"  #: process tuples
    PAUSE = "pause"  #: stop at the pause marker and export the cut
    MOVE = "move"  #: stay stopped: Storm places executors
    RESTORE = "restore"  #: own exactly the groups of the tables, with the state of `cut`; probe every channel


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """See the module's rules."""

    epoch: int = 0  #: number of the last reconfiguration, abort or reset
    phase: Phase = Phase.RUN  #: the duty of the tasks
    base: int = 0  #: epoch in which the state in memory was established
    cut: int = 0  #: PAUSE: cut to export; RESTORE, RUN: cut that the base was restored from (0: empty state)
    checkpoint: int = 0  #: newest cut asked for while running (0: none)
    committed: tuple[int, ...] = ()  #: cuts that every task has exported, ascending; older ones may be deleted
    tables: Mapping[str, Table] = field(default_factory=dict)  #: component -> owners, as of this epoch
    restarts: tuple[int, ...] = ()  #: RESTORE: tasks whose worker Storm restarts now; RUN: tasks about to return
    absent: tuple[int, ...] = ()  #: tasks that own nothing and take no part, as of the base or the newest handover
    left_out: tuple[int, ...] = ()  #: absent tasks whose processes were lost: a new one stands aside
    stays: tuple[int, ...] = ()  #: PAUSE: tasks that stay on their node; their kept groups go to its swap area
    handover: int = 0  #: epoch of the newest handover since the base (0: none)
    witnesses: tuple[int, ...] = ()  #: tasks that report it, by which all others that work have passed it; empty: all
    ahead: int = 0  #: epoch of a handover to come: copy ahead the groups that will change hands (0: none)
    coming: Mapping[str, Table] = field(default_factory=dict)  #: its tables
    version: int = RECORD_VERSION

    def to_json(self) -> str:
        """Compact JSON; equal records give equal text."""
        document = {name: getattr(self, name) for name in self.__slots__}
        for name in ("tables", "coming"):
            document[name] = {key: list(table) for key, table in sorted(getattr(self, name).items())}
        return json.dumps(document, separators=(",", ":"))

    @staticmethod
    @lru_cache(maxsize=16)
    def from_json(text: str | bytes) -> ControlRecord:
        """Raises ProtocolError if the text is no record or of a newer version. Each upstream task's marker carries the
        same text, so the last ones are kept.
        """
        try:
            document = json.loads(text)
            version = document.pop("version")
            if version > RECORD_VERSION:
                raise ProtocolError(
                    f"control record field 'version' is {version}, this program reads {RECORD_VERSION}.",
                    remedy="Update Leeward in the topology's environment.",
                )
            document["phase"] = Phase(document["phase"])
            for name in ("tables", "coming"):
                tables = document.get(name, {})
                document[name] = {key: _table(name, key, owners) for key, owners in tables.items()}
            for name in ("committed", "stays", "restarts", "absent", "left_out", "witnesses"):
                document[name] = tuple(document.get(name, ()))
            return ControlRecord(**document)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a control record: {error!r}.", remedy="Only the coordinator writes it.") from None

    @property
    def stage(self) -> tuple[int, int]:
        """Records in the order in which they follow each other."""
        return self.epoch, (Phase.PAUSE, Phase.MOVE, Phase.RESTORE, Phase.RUN).index(self.phase)

    def with_phase(self, phase: Phase) -> ControlRecord:
        """The same record in another phase."""
        return replace(self, phase=phase)


def _table(field_name: str, component: str, owners: list[Any]) -> Table:
    """A table of a record; raises ProtocolError if a key group has no owner."""
    for group, owner in enumerate(owners):
        if type(owner) is not int or owner < 0:
            raise ProtocolError(
                f"control record field {field_name!r} gives group {group} of {component!r} to {owner!r}.",
                remedy="Only the coordinator writes it.",
            )
    return tuple(owners)


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things are in ZooKeeper."""

    root: str  #: e.g. /leeward
    topology_id: str  #: Storm's id, so that a new topology of the same name starts clean

    @property
    def base(self) -> str:
        """Everything of this topology."""
        return f"{self.root}/topologies/{self.topology_id}"

    @property
    def control(self) -> str:
        """The control record."""
        return f"{self.base}/control"

    @property
    def told(self) -> str:
        """The newest of those control records that markers do not bring."""
        return f"{self.base}/told"

    @property
    def halt(self) -> str:
        """Changes with each RESTORE: every task reads the record then, also one that would put it off."""
        return f"{self.base}/halt"

    @property
    def journal(self) -> str:
        """The coordinator's journal of the reconfiguration in progress."""
        return f"{self.base}/journal"

    @property
    def standing(self) -> str:
        """Decisions of people that hold on, the plan that waits for one, and the deployment to go back to."""
        return f"{self.base}/standing"

    @property
    def learnt(self) -> str:
        """The learnt record: response times, streams, nodes and pauses; the next leader goes on from it."""
        return f"{self.base}/learnt"

    @property
    def history(self) -> str:
        """The newest reconfigurations that are over, a JSON list."""
        return f"{self.base}/history"

    @property
    def requests(self) -> str:
        """One child for each request that is not dealt with, in the order in which they came."""
        return f"{self.base}/requests"

    @property
    def answers(self) -> str:
        """One child for each request that was dealt with, by its name: the result."""
        return f"{self.base}/answers"

    @property
    def barriers(self) -> str:
        """Parent of the barriers; old ones are deleted."""
        return f"{self.base}/barrier"

    def barrier(self, name: str) -> str:
        """A persistent child for each task that has arrived, holding its Report."""
        return f"{self.barriers}/{name}"

    @property
    def joined(self) -> str:
        """One child for each task whose first process has started (base 0 only)."""
        return f"{self.base}/joined"

    def recover(self, epoch: int) -> str:
        """Exists when a task found, in `epoch`, that state or tuples were lost; data: a Loss."""
        return f"{self.base}/recover/{epoch}"

    @staticmethod
    def placement(root: str, topology: str) -> str:
        """The wanted placement that the plugin reads."""
        return f"{root}/placement/{topology}"

    @staticmethod
    def snapshot(root: str) -> str:
        """The plugin's snapshot of supervisors, slots, executors and assignments, packed if it is long."""
        return f"{root}/snapshot"


def cut_barrier(cut: int) -> str:
    """Barrier that a task reaches when its part of the cut is durable."""
    return f"cut-{cut}"


def ready_barrier(epoch: int) -> str:
    """Barrier that a task reaches when its state is in and every upstream channel has carried a probe.

    Under RUN: when every channel to and from absent tasks has carried a call.
    """
    return f"ready-{epoch}"


def ahead_barrier(epoch: int) -> str:
    """Barrier that a donor reaches when it has copied nearly all that it will give away in this handover.

    Receivers do not report: a donor sees their acknowledgements.
    """
    return f"ahead-{epoch}"


def handover_barrier(epoch: int) -> str:
    """Barrier that a task reaches when it has passed the route marker, sent what it lost and got what it gained."""
    return f"handover-{epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Written by a task when it reaches a barrier, or with the reason why it cannot."""

    task: int
    component: str
    error: str = ""  #: why it cannot be reached, for people; empty if it was
    bad_cut: bool = False  #: the cut itself cannot be read; other errors may pass by themselves
    bytes: int = 0  #: state exported or imported
    keys: int = 0  #: state entries exported or imported
    seconds: float = 0.0  #: time that the export, import or handover took
    waited: float = 0.0  #: handover: longest time that a tuple waited for its group, in seconds
    period_s: float = 0.0  #: checkpoint: longest time until the next one that the state's store allows; 0: any

    def to_json(self) -> str:
        """Compact JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | builtins.bytes) -> Report:
        """Raises ProtocolError if the text is no report."""
        try:
            return Report(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"not a barrier report: {error!r}.", remedy="Only tasks write them.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Written by a task that has found that state or tuples were lost."""

    task: int
    why: str
    fresh: bool = False  #: the process has just started: only what its predecessor had in memory is missing

    def to_json(self) -> str:
        """Compact JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Loss:
        """Raises ProtocolError if the text is none."""
        try:
            return Loss(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"not a report of a loss: {error!r}.", remedy="Only tasks write them.") from None
