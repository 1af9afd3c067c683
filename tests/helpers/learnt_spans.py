"""Measurements of two tasks over some spans, and a learner that has observed them."""

from __future__ import annotations

from leeward.control.learning.curves import SPAN_S
from leeward.control.learning.learner import Learner
from leeward.core.journal import Journal, StepName
from leeward.core.metrics import TaskMetrics
from leeward.core.outcome import DONE
from leeward.core.plan import Slot

SLOTS = {1: Slot("n1", 1), 2: Slot("n1", 1)}
SERVICE = {"source": 1000.0, "work": 100.0}
STREAM = ("source", "work")


def looks(t: float, *, pid: int = 1, growth: float = 0.5, busy: float = 0.5) -> dict[int, TaskMetrics]:
    """Tasks of which `work` has been `busy` for t seconds, with the waits of a queue that grows by `growth`."""
    done = round(100 * busy * t)
    stay_s = 0.01 * (1 + growth * busy / (1 - busy))
    return {
        1: TaskMetrics(component="source", pid=1, t=t, sent={"default": done}, processed=done),
        2: TaskMetrics(
            component="work", pid=pid, t=t, received={"source": done}, processed=done, busy_s=busy * t, sojourns=done,
            sojourn_s=done * stay_s, up_bytes=round(1e6 * t), up_s=0.1 * t, trip_s=0.002,
        ),
    }  # fmt: skip


def taught(spans: int = 40, **shape) -> Learner:
    learner = Learner([STREAM])
    for at in range(spans + 1):
        learner.observe(looks(100.0 + SPAN_S * at, **shape), SLOTS, SERVICE, SPAN_S * at)
    return learner


CLOSED = Journal(
    kind="handover",
    step=StepName.CLOSED,
    result=DONE,
    exported=1000,
    waited=0.25,
    new_tables={"count": {0: 1}},
    times={"handover": 5.0, "closed": 9.0},
)
