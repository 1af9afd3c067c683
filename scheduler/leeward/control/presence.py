"""Does a topology run? The service asks Nimbus now and then. No answer proves nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import TypeVar

from leeward.control.errors import TopologyGoneError
from leeward.control.loop import Aside
from leeward.control.ports import Nimbus, Structure
from leeward.core.errors import ClusterRefusedError

T = TypeVar("T")
#: Between two questions, seconds.
ASK_S = 5.0
#: So many answers in a row must lack the topology before it counts as gone.
ANSWERS = 2
#: Between two tries to reach a cluster that refuses, seconds: at first, and at most.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 10.0


class Presence:
    """Asks on another thread, as a Nimbus that is away lets its clients wait for seconds."""

    def __init__(
        self, nimbus: Nimbus, structure: Structure, executor: Executor | None = None,
        *, tell: Callable[[str], None] = lambda why: None,
    ) -> None:  # fmt: skip
        """`tell(why)` is called when Nimbus does not answer any more, and with an empty text when it does again."""
        self._nimbus, self._structure, self._tell = nimbus, structure, tell
        self.away = ""  #: why Nimbus has not answered the newest question; empty if it has, or none is answered yet
        self._executor = executor or Aside()
        self._answer: Future[Mapping[str, str]] | None = None
        self._next, self._absent = 0.0, 0

    def check(self, now: float) -> None:
        """Does not wait. Raises TopologyGoneError once Nimbus has answered that the topology no longer runs."""
        if self._answer is not None and self._answer.done():
            self._take(self._answer)
            self._answer = None
        if self._answer is None and now >= self._next:
            self._next = now + ASK_S
            self._answer = self._executor.submit(self._nimbus.topologies)

    def _take(self, answer: Future[Mapping[str, str]]) -> None:
        failure = answer.exception()
        if bool(failure) != bool(self.away):
            self._tell(str(failure or ""))
        self.away = str(failure or "")
        if failure is not None:
            return
        running = answer.result()
        self._absent = 0 if self._structure.id in running.values() else self._absent + 1
        if self._absent >= ANSWERS:
            raise TopologyGoneError(
                f"topology {self._structure.id} no longer runs; running: {sorted(running.values())}.",
                remedy="Submit it again to have it served.",
            )


def patiently(
    ask: Callable[[], T],
    stop: threading.Event,
    waiting: Callable[[str], None],
    *,
    patience: Callable[[float], float] = float,
) -> T | None:
    """The result of `ask()`, as soon as the cluster does not refuse it; None if `stop` was set before.

    `waiting(why)` is called after each refusal; every other error goes to the caller. `patience`: a clock's.
    """
    pause = FIRST_PAUSE_S
    while not stop.is_set():
        try:
            return ask()
        except ClusterRefusedError as error:
            waiting(str(error))
        stop.wait(patience(pause))
        pause = min(2 * pause, LONGEST_PAUSE_S)
    return None
