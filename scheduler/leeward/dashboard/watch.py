"""Gathers what the live view shows: counters of the tasks, the control record, events, results."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leeward.adapters.results import Results
from leeward.control.counted import emitted, packed
from leeward.control.lines import read_samples
from leeward.control.monitor import rates_between
from leeward.control.ports import SnapshotStore
from leeward.core.control import ControlRecord, Phase
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot, deployment
from leeward.dashboard.live import Operator, Screen

_WINDOW = 5  # samples, one each second: rates are averaged over them
_KEPT = 240  # points of a curve


class EventFile:
    """The service's events (`adapters/events.py`), read as they are written."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0
        self.all: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """Events since the last call."""
        if not self._path.exists():
            return []
        with self._path.open(encoding="utf-8") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._at += len(whole.encode())
        new = [json.loads(line) for line in whole.splitlines()]
        self.all += new
        return new

    def named(self, *actions: str) -> list[dict[str, Any]]:
        """All events so far with one of these actions."""
        return [event for event in self.all if event["action"] in actions]


class Watch:
    """One screen a second. `record` and `slots` read ZooKeeper; both may be None while nobody has written."""

    def __init__(
        self,
        *,
        title: str,
        topology_id: str,
        snapshots: SnapshotStore,
        results: Results,
        events: EventFile,
        record: Callable[[], ControlRecord | None],
        slots: Callable[[], Mapping[int, Slot]],
        tasks: Mapping[int, str],
        order: list[str],
    ) -> None:
        self._title, self._id = title, topology_id
        self._snapshots, self._results, self._events = snapshots, results, events
        self._record, self._slots, self._tasks, self._order = record, slots, tasks, order
        self._samples: deque[dict[int, TaskMetrics]] = deque(maxlen=_WINDOW)
        self._rates: deque[float] = deque(maxlen=_KEPT)
        self._responses: deque[float] = deque(maxlen=_KEPT)
        self._emitted: dict[int, int] = {}  # by the source: process -> tuples
        self._last_result = 0

    def screen(self, now: float, started: float) -> Screen:
        """Read everything once. `now` and `started` are wall-clock seconds."""
        self._samples.append(read_samples(self._snapshots.metrics(self._id)))
        rates = rates_between(packed(self._samples[0]), self._samples[-1], minimum_samples=1)
        self._events.read()
        rows = [row for row in self._results.newest(20) if row.number > self._last_result]
        self._responses.extend(1000 * row.age_s for row in rows)
        if rows:
            self._last_result = rows[-1].number
        source = self._order[0]
        self._rates.append(rates.emitted.get(source, 0.0))
        record = self._record()
        self._emitted.update({s.pid: emitted(s) for s in self._samples[-1].values() if s.component == source})
        newest = self._results.newest(1)
        return Screen(
            title=self._title,
            clock=_clock(newest[-1].text) if newest else "-",
            elapsed_s=now - started,
            rates=list(self._rates),
            responses_ms=list(self._responses),
            backlog=max(0, self._results.sent() - sum(self._emitted.values())),
            cost=self._cost(),
            downtime_share=downtime_s(self._events.all) / max(1.0, now - started),
            operators=self._operators(record, rates.streams, rates.emitted),
            migration=in_progress(record, self._events, now),
            history=[describe(event) for event in self._events.named("reconfiguration_ended", "reset")],
            routes=_routes(newest[-1].text) if newest else [],
        )

    def _operators(
        self,
        record: ControlRecord | None,
        streams: Mapping[tuple[str, str], float],
        emitted: Mapping[str, float],
    ) -> list[Operator]:
        if record is None:
            return []
        places = deployment(record.tables, {task: Slot("?", 0) for task in self._tasks} | dict(self._slots()))
        operators = []
        for name in self._order:
            arriving = sum(rate for (_, target), rate in streams.items() if target == name)
            operators.append(
                Operator(
                    name=name,
                    replicas=sum(places[name].values()),
                    tasks=sum(component == name for component in self._tasks.values()),
                    places=places[name],
                    rate=arriving or emitted.get(name, 0.0),
                    busy=self._busy(name, sum(places[name].values())),
                )
            )
        return operators

    def _busy(self, name: str, replicas: int) -> float | None:
        """Mean share of time that the component's replicas were busy over the window."""
        old, new = self._samples[0], self._samples[-1]
        shares = [
            (after.busy_s - old[task].busy_s) / (after.t - old[task].t)
            for task, after in new.items()
            if after.component == name and task in old and old[task].pid == after.pid and after.t > old[task].t
        ]
        return min(1.0, sum(shares) / replicas) if shares else None

    def _cost(self) -> float | None:
        plans = self._events.named("plan_made")
        return plans[-1].get("cost_per_h") if plans else None


def in_progress(record: ControlRecord | None, events: EventFile, now: float) -> str:
    """The line of the running migration, or why the topology is held and the commands that end that; empty: none.

    `now` is the wall clock in seconds, as the events have it.
    """
    if record is None or record.phase is Phase.RUN:
        return ""
    *_, newest = events.named("held", "phase", "cut_chosen") or [{"action": ""}]
    if newest["action"] == "held":
        return f"HELD, as no cut can be read: {newest['why']}. {newest['remedy']}"
    begun = events.named("reconfiguration_started", "reset")
    since = f", {now - begun[-1]['t']:.1f} s" if begun else ""
    why = f": {begun[-1].get('reason') or begun[-1].get('why', '')}" if begun else ""
    return f"{record.phase.upper()} (epoch {record.epoch}, cut {record.cut}{since}){why}"


def downtime_s(events: Iterable[Mapping[str, Any]]) -> float:
    """Seconds that the stream stood still in finished reconfigurations and resets.

    In a handover nothing stands still; the longest time that a tuple waited for its group counts all the same.
    """
    return sum(float(event.get("pause_s", 0.0)) for event in events if event["action"] == "reconfiguration_ended")


def describe(event: Mapping[str, Any]) -> str:
    """One line for people about a reconfiguration or a reset."""
    if event["action"] == "reset":
        return f"reset: {event.get('why', '')}"[:60]
    changes = ", ".join(f"{c['kind']} {c['component']} {_places(c)}" for c in event.get("changes", []))
    return f"{event.get('pause_s', 0):5.2f} s  {changes or event.get('result', '')}"


def _places(change: Mapping[str, Any]) -> str:
    def short(places: Mapping[str, int]) -> str:
        return "+".join(f".{node.rsplit('.', 1)[-1]}" + (f"x{n}" if n > 1 else "") for node, n in places.items())

    return f"{short(change['before'])} -> {short(change['after'])}"


def _clock(row: str) -> str:
    """Dropoff time of the row that made the newest result."""
    text = row.split(",")[1]
    return text if len(text) < 20 else str(datetime.fromisoformat(text).replace(tzinfo=UTC))


def _routes(row: str) -> list[tuple[str, str]]:
    cells = [cell for cell in row.split(",")[2:] if cell != "NULL"]
    return list(zip(cells[::2], cells[1::2], strict=False))
