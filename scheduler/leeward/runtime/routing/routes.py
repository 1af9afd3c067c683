"""The routes of one task: `core/route.py` for each component downstream that has a router, and what these need.

A thread waits for answers and for the next turn; all decisions are made in the task's own thread, between two tuples.
Weights and samples travel as markers (`MarkerGrouping`), so they take effect at one point of the stream. Tuples never
wait for a router, and while it knows nothing, or fails, they rotate as without one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from leeward.core.route import Route, RoutePacing
from leeward.runtime.routing.returns import Answer, Returns

log = logging.getLogger(__name__)

#: Kinds of markers that only groupings read, and that only the tasks named in them get.
WEIGHTS, SAMPLE = "weights", "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The task whose routes these are. All but `post` is called in its own thread, `emitted` and `works` in any."""

    name: str  #: for people
    works: Callable[[], bool]  #: it is a replica, and tuples flow
    emitted: Callable[[], int]  #: tuples so far
    emit: Callable[[list[object]], None]  #: a marker
    post: Callable[[Callable[[], None]], None]  #: work for its own thread


class Routes:
    """See the module."""

    def __init__(
        self, sender: Sender, routes: Mapping[str, Route], returns: Returns, *, pacing: RoutePacing = RoutePacing(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`routes`: by component downstream."""
        self._sender, self._routes, self._returns = sender, dict(routes), returns
        self._pacing, self._clock = pacing, clock
        self._arrived: deque[Answer] = deque()
        self._posted = False
        self._number, self._before = 0, 0  # of the last sample; tuples emitted until the last turn

    def start(self) -> None:
        """From now on it takes turns."""
        threading.Thread(target=self._run, name="leeward-routes", daemon=True).start()

    def follow(self, tables: Mapping[str, Sequence[int]]) -> None:
        """The task has sent a marker with these tables."""
        for component, route in self._routes.items():
            if component in tables:
                route.follow(tables[component])

    def ahead_s(self) -> float:
        """From this task to the sink, s, on the longest of its routes; 0 as far as no router knows."""
        now = self._clock()
        return max((route.ahead_s(now) for route in self._routes.values()), default=0.0)

    def weights(self) -> dict[str, dict[int, int]]:
        """Component -> weights in force, for people; any thread may ask."""
        return {component: dict(route.weights) for component, route in list(self._routes.items())}

    def turn(self) -> None:
        """In the task's own thread."""
        self._posted = False
        while self._arrived:
            self._each(partial(self._answered, self._arrived.popleft()))
        if not self._sender.works():
            self._each(Route.rest)
            return
        emitted = self._sender.emitted()
        busy, self._before = emitted != self._before, emitted
        self._number += 1
        for component in list(self._routes):
            self._each(partial(self._take, component, busy), only=component)

    @staticmethod
    def _answered(answer: Answer, route: Route) -> None:
        route.answered(answer.task, answer.number, answer.at, service_s=answer.service_s, ahead_s=answer.ahead_s)

    def _take(self, component: str, busy: bool, route: Route) -> None:
        turn = route.turn(self._number, self._clock(), busy=busy)
        if turn.weights is not None:
            shares = ",".join(f"{task}:{weight}" for task, weight in turn.weights.items())
            self._sender.emit([WEIGHTS, 0, f"{component}={shares}", "", ""])
        if turn.samples:
            tasks = ",".join(map(str, turn.samples))
            self._sender.emit([SAMPLE, self._number, f"{component}={tasks}", "", self._returns.address])

    def _each(self, deed: Callable[..., object], only: str | None = None) -> None:
        """On each route, or on one. A router that fails is given up: its tuples rotate as without one."""
        for component, route in list(self._routes.items()):
            if only not in (None, component):
                continue
            try:
                deed(route)
            except Exception:
                log.exception("%s goes on without its router to %s, which failed", self._sender.name, component)
                del self._routes[component]
                self._sender.emit([WEIGHTS, 0, f"{component}=", "", ""])

    # --- its thread

    def _run(self) -> None:
        due = self._clock()
        while True:
            due = max(due + self._pacing.every_s, self._clock())
            while (left := due - self._clock()) > 0:
                try:
                    answer = self._returns.next(left)
                except OSError:
                    return  # closed
                if answer is not None:
                    self._arrived.append(answer)
            self._wake()

    def _wake(self) -> None:
        """Have a turn taken, unless one is about to be or there is nothing to do."""
        waits = any(route.waits for route in list(self._routes.values()))
        idle = self._sender.emitted() == self._before and not self._arrived and not waits
        if not self._posted and not idle:
            self._posted = True
            self._sender.post(self.turn)
