"""All that the service knows, for other threads to ask: an EventSink that keeps reports and rings.

It keeps no event without bound: decisions in a ring, whose ids go on upwards, so that a listener that was cut off
resumes behind the last id that it has seen; measurements only as the newest report and as points of the rings.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from leeward.control.ports import Clock
from leeward.control.report.fold import Known, at, first, fold, nodes_at, with_history
from leeward.control.report.rings import History, Series
from leeward.control.report.values import Missing, Node, Reconfiguration, Report

#: Decisions that a listener can still get after it was cut off.
KEPT = 2000
#: Topologies that have ended and are still told of.
GONE = 10


@dataclass(frozen=True, slots=True)
class Event:
    """An event, numbered."""

    id: int
    t: float  #: s since 1970
    action: str
    topology: str  #: empty: of the whole service
    fields: Mapping[str, object]


class Knowledge:
    """See the module. Safe to use from several threads."""

    def __init__(self, clock: Clock, *, kept: int = KEPT) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._known: dict[str, Known] = {}
        self._series: dict[str, History] = {}
        self._events: deque[Event] = deque(maxlen=kept)
        self._newest: dict[str, Event] = {}  # measurements
        # a service that starts again goes on above the ids of the one before, so no listener mistakes them
        self._number = self._lost = int(clock.now() * 1e6)
        self._lacks: dict[str, Missing] = {}
        self._listeners: set[Callable[[], None]] = set()

    # --- being told

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        """As an EventSink."""
        now, topology = self._clock.now(), str(fields.get("topology", ""))
        with self._lock:
            self._number += 1
            rest = {name: value for name, value in fields.items() if name != "topology"}
            event = Event(self._number, now, action, topology, rest)
            if action in ("measured", "cluster_seen"):
                self._newest[topology] = event
            elif action != "learnt":  # the report has it, with the next measurement
                if len(self._events) == self._events.maxlen:
                    self._lost = self._events[0].id
                self._events.append(event)
            self._fold(event)
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def _fold(self, event: Event) -> None:
        name = event.topology
        if not name:
            self._fold_service(event)
            return
        before = self._known.get(name)
        known = fold(before or first(name, event.t), event.action, event.fields, event.t)
        self._known[name] = known
        if before is not None and known.report.heard != before.report.heard:
            self._series.pop(name, None)  # another topology under the same name
        if event.action == "measured":
            self._series.setdefault(name, History()).add(event.t, points(at(known, event.t)))
        if event.action == "topology_gone":
            self._forget()

    def _fold_service(self, event: Event) -> None:
        if event.action == "waiting":
            since = self._lacks["server"].since if "server" in self._lacks else event.t
            self._lacks["server"] = Missing(what="server", since=since, why=str(event.fields.get("why", "")))
        elif event.action in ("node_drains", "node_undrained"):
            self._known = {
                name: fold(known, event.action, event.fields, event.t) for name, known in self._known.items()
            }
        else:
            self._lacks.pop("server", None)

    def _forget(self) -> None:
        gone = [known.report for known in self._known.values() if known.report.role == "gone"]
        for report in sorted(gone, key=lambda report: report.last_at)[:-GONE]:
            del self._known[report.topology]
            self._series.pop(report.topology, None)
            self._newest.pop(report.topology, None)

    # --- being asked

    @property
    def now(self) -> float:
        """Of its clock, s since 1970."""
        return self._clock.now()

    @property
    def names(self) -> tuple[str, ...]:
        """The topologies that it was told of, by name."""
        with self._lock:
            return tuple(sorted(self._known))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """Lacks of the whole service."""
        with self._lock:
            return tuple(self._lacks[what] for what in sorted(self._lacks))

    def report(self, name: str) -> Report | None:
        """At this moment; None for a topology that it was not told of."""
        now = self._clock.now()
        with self._lock:
            known = self._known.get(name)
        return None if known is None else at(known, now)

    def nodes(self, name: str) -> tuple[Node, ...]:
        """With the replicas of this topology; none if it is not known."""
        with self._lock:
            known = self._known.get(name)
        return () if known is None else nodes_at(known)

    def timeline(self, name: str, stored: tuple[Reconfiguration, ...] = ()) -> tuple[Reconfiguration, ...]:
        """Its reconfigurations that are over, oldest first, with those that a store has kept."""
        with self._lock:
            known = self._known.get(name)
        return stored if known is None else with_history(known, stored)

    def series(self, name: str, figures: tuple[str, ...] = (), since: float = 0.0) -> Series:
        """Points of these figures, of all without one. Empty if the topology is not known."""
        with self._lock:
            # to write the points takes a hundred times as long as to copy them, and `emit` waits for the lock
            kept = deepcopy(self._series.get(name))
        return kept.read(figures or kept.names, since) if kept else Series([], {})

    def figures(self, name: str) -> tuple[str, ...]:
        """Names of the figures of which it has points."""
        with self._lock:
            return self._series[name].names if name in self._series else ()

    def events(self, after: int, topology: str = "") -> tuple[Event, ...]:
        """Decisions with a higher id than `after`, and the newest measurement of each topology, by id; with a name,
        those of that topology and of the whole service."""
        with self._lock:
            found = [event for event in self._newest.values() if event.id > after]
            for event in reversed(self._events):  # their ids ascend, and a listener has seen nearly all of them
                if event.id <= after:
                    break
                found.append(event)
        return tuple(
            sorted(
                (event for event in found if not topology or event.topology in ("", topology)),
                key=lambda event: event.id,
            )
        )

    @property
    def newest_id(self) -> int:
        """Of the last event."""
        with self._lock:
            return self._number

    def missed(self, after: int) -> bool:
        """Whether decisions with a higher id than `after` are not kept any more, or `after` is above all ids: it is of
        another process then."""
        with self._lock:
            return after < self._lost or after > self._number

    # --- listening

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """`wake` is called after each event, on the thread that told of it; returns a function that ends this."""
        with self._lock:
            self._listeners.add(wake)

        def end() -> None:
            with self._lock:
                self._listeners.discard(wake)

        return end


def points(report: Report) -> dict[str, float | None]:
    """Figure -> its value, as the rings keep it; of a component under `NAME.figure`."""
    found: dict[str, float | None] = {
        "rate": report.rate, "response_s": report.response_s, "modelled_response_s": report.modelled_response_s,
        "cost_per_h": report.cost_per_h, "downtime_share": report.downtime_share,
        "backlog": None if report.backlog is None else float(report.backlog),
    }  # fmt: skip
    for component in report.components:
        found[f"{component.id}.rate"] = component.rate
        found[f"{component.id}.replicas"] = float(component.replicas)
        found[f"{component.id}.queued"] = None if component.queued is None else float(component.queued)
    return found
