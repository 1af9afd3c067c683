"""Events of a simulation, and the figures of its end. Pure, but for the list of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from leeward.sim.memory import ManualClock
from leeward.sim.world.cluster import EPOCH_S, Sample

#: Events that are told at each second or checkpoint, and left out.
_EVERY_TIME = {"measured", "learnt", "checkpoint_committed", "waiting", "service_started", "leading"}
#: Fields that differ from run to run.
_WALL = {"solve_s"}
#: Settings that a refusal names with its numbers.
_LIMITS = ("scale_down_s", "no_return_s", "most_moves", "cost_cap")
#: Limits of times, in words.
_DELAYS = {"scale_down_s": "wanted for less than scale_down_s", "no_return_s": "back within no_return_s"}


@dataclass(frozen=True, slots=True)
class Event:
    """Events of the service, its coordinator and the loop."""

    at_s: float  #: since the beginning
    action: str
    fields: Mapping[str, Any]


class Ledger:
    """EventSink that keeps what matters, and adds up what the solver took."""

    def __init__(self) -> None:
        self.clock = ManualClock(EPOCH_S)  # the cluster's, once there is one
        self.events: list[Event] = []
        self.solving_s = self.slowest_s = 0.0  #: real time

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        """Keep it."""
        solved = fields.get("solve_s")
        if isinstance(solved, float):
            self.solving_s += solved
            self.slowest_s = max(self.slowest_s, solved)
        if action not in _EVERY_TIME:
            kept = {name: value for name, value in fields.items() if name not in _WALL}
            self.events.append(Event(round(self.clock.time - EPOCH_S, 3), action, kept))

    def of(self, action: str) -> list[Event]:
        """Those of one action."""
        return [event for event in self.events if event.action == action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A simulation's figures; all but `wall` are the same for the same seed."""

    plans: int  #: that the policy made
    kept: int  #: of them: that changed nothing
    refused: Mapping[str, int]  #: why -> plans
    failed: int  #: of the policy's answers: errors, refused too
    handovers: int
    restarts: int
    undone: int  #: reconfigurations that were given up, or ended in a reset
    handover_wait_s: float  #: longest waits of a tuple, added up over the handovers
    restart_stop_s: float  #: time without a tuple, added up over the restarts
    longest_stop_s: float
    cost: float  #: $
    hours: float
    mean_response_s: float
    p95_response_s: float
    longest_response_s: float
    over_share: float  #: share of time over `response_max_s`
    offered: float  #: tuples
    waiting: float  #: tuples that wait at the end
    most_waiting: float
    lost: float  #: tuples
    resets: int  #: for which tasks have asked
    mean_replicas: float
    most_replicas: int
    peak: float  #: highest rate that was offered, tuples/s
    modelled: int  #: plans that kept a deployment, of which the policy has modelled the response time
    model_error: float  #: mean distance of the model from the simulated response time of those windows, relative to it
    samples: Sequence[Sample] = field(repr=False)

    @property
    def downtime_s(self) -> float:
        """All waits and stops for a change, s."""
        return self.handover_wait_s + self.restart_stop_s


def figures_of(
    ledger: Ledger, samples: Sequence[Sample], *, replica_cost: float, response_max_s: float, lost: float, resets: int,
    window_s: float,
) -> Figures:  # fmt: skip
    """The figures of a run. `window_s`: time over which the policy's rates are measured."""
    whole = sum(sample.seconds for sample in samples) or 1.0
    replica_s = sum(sample.replicas * sample.seconds for sample in samples)
    ended = [event.fields for event in ledger.of("reconfiguration_ended")]
    done = [fields for fields in ended if fields["result"] == "done"]
    stops = [float(fields["pause_s"]) for fields in done if fields["kind"] == "restart"]
    waits = [float(fields["pause_s"]) for fields in done if fields["kind"] == "handover"]
    refused = Counter(_kind_of(str(event.fields["why"])) for event in ledger.of("plan_refused"))
    made, errors = ledger.of("plan_made"), model_errors(ledger, samples, window_s)
    return Figures(
        plans=len(made), kept=len(made) - len(ended) - _refused_plans(ledger), refused=dict(sorted(refused.items())),
        failed=len(ledger.of("plan_refused")) - _refused_plans(ledger),
        handovers=len(waits), restarts=len(stops), undone=len(ended) - len(done),
        handover_wait_s=sum(waits), restart_stop_s=sum(stops), longest_stop_s=max([*stops, *waits], default=0.0),
        cost=replica_s / 3600.0 * replica_cost, hours=whole / 3600.0,
        mean_response_s=sum(sample.response_s * sample.seconds for sample in samples) / whole,
        p95_response_s=quantile(samples, 0.95),
        longest_response_s=max((sample.response_s for sample in samples), default=0.0),
        over_share=sum(s.seconds for s in samples if s.response_s > response_max_s) / whole,
        offered=sum(sample.offered * sample.seconds for sample in samples),
        waiting=samples[-1].waiting if samples else 0.0,
        most_waiting=max((sample.waiting for sample in samples), default=0.0), lost=lost, resets=resets,
        mean_replicas=replica_s / whole, most_replicas=max((sample.replicas for sample in samples), default=0),
        modelled=len(errors), model_error=sum(errors) / len(errors) if errors else 0.0,
        peak=max((sample.offered for sample in samples if sample.seconds >= 1.0), default=0.0), samples=samples,
    )  # fmt: skip


def model_errors(ledger: Ledger, samples: Sequence[Sample], window_s: float) -> list[float]:
    """Of each plan that keeps the deployment: distance of its response time from the simulated mean over the window of
    its rates, relative to that mean. Windows with a reconfiguration in them are left out.
    """
    changed = [event.at_s for event in (*ledger.of("reconfiguration_started"), *ledger.of("reconfiguration_ended"))]
    errors, first = [], 0
    for plan in ledger.of("plan_made"):
        begin, end, modelled = plan.at_s - window_s, plan.at_s, plan.fields.get("response_s")
        if plan.fields.get("changes") or not isinstance(modelled, float) or any(begin <= t <= end for t in changed):
            continue
        while first < len(samples) and samples[first].at_s < begin:
            first += 1
        whole = seconds = 0.0
        for sample in islice(samples, first, None):
            if sample.at_s > end:
                break
            whole, seconds = whole + sample.response_s * sample.seconds, seconds + sample.seconds
        if whole:
            errors.append(abs(modelled * seconds / whole - 1.0))
    return errors


def _refused_plans(ledger: Ledger) -> int:
    """Refusals of plans that were made: each follows its plan at the same time."""
    made = {event.at_s for event in ledger.of("plan_made")}
    return sum(event.at_s in made for event in ledger.of("plan_refused"))


def _kind_of(why: str) -> str:
    """A refusal without its numbers, which differ from plan to plan."""
    if why.startswith("the gain"):
        return "the gain is below minimum_gain"
    for limit in _LIMITS:
        if limit in why:
            return _DELAYS.get(limit, f"over {limit}")
    return why


def quantile(samples: Sequence[Sample], share: float) -> float:
    """The response time that `share` of the time is not over."""
    left = share * sum(sample.seconds for sample in samples)
    for sample in sorted(samples, key=lambda sample: (sample.response_s, sample.at_s)):
        left -= sample.seconds
        if left <= 0:
            return sample.response_s
    return 0.0
