"""All that one term of leadership learns of its topology. Pure: time is an argument."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leeward.control.costs import HandoverCosts
from leeward.control.learning.curves import MOST_BUSY, SPAN_S, CurveLearner, Stay
from leeward.control.learning.record import LearntRecord
from leeward.control.learning.restarts import restart_of
from leeward.control.learning.rests import RestLearner
from leeward.control.learning.selectivities import SelectivityLearner, completed
from leeward.control.learning.transfers import TransferLearner
from leeward.control.monitor import Rates
from leeward.core.journal import Journal
from leeward.core.learnt import Learnt, Origin, Restart
from leeward.core.metrics import TaskMetrics
from leeward.core.model import HandoverCost
from leeward.core.outcome import DONE
from leeward.core.plan import Slot

#: Restarts that count.
KEEP = 16
#: A curve that another leader has learnt is forgotten when less than so many samples of it still count.
LEAST = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Model and measurement of one component over the newest span, at the rate of its replicas then."""

    component: str
    utilisation: float  #: mean over the replicas, by tuples
    measured_s: float  #: mean sojourn time of its tuples
    mm1_s: float  #: by M/M/1 with the measured service time
    learnt_s: float | None  #: by the learnt curve
    error_s: float | None  #: standard error of `learnt_s`
    samples: float  #: that the curve was learnt from
    low: float  #: lowest utilisation among them
    high: float  #: highest


class Learner:
    """See the module."""

    def __init__(
        self, streams: Iterable[tuple[str, str]] = (), record: LearntRecord | None = None, now: float = 0.0
    ) -> None:
        """`streams`: (from, to), of the topology; `record`: of another leader, to go on from at `now`."""
        self._streams, kept = tuple(sorted(streams)), record or LearntRecord(topology_id="", at=0.0)
        self._known_epoch, self._epoch = record.epoch if record else -1, kept.epoch
        self._costs = HandoverCosts(kept.handovers)
        self._restarts = deque((Restart(*one) for one in kept.restarts), maxlen=KEEP)
        curves = {name: CurveLearner.of(numbers, now) for name, numbers in kept.curves.items()}
        self._curves = {name: learner for name, learner in curves.items() if learner.samples >= LEAST}
        self._selectivities = {
            stream: SelectivityLearner.of(kept.streams[stream], now) if stream in kept.streams else SelectivityLearner()
            for stream in self._streams
        }
        self._transfers = TransferLearner(kept.stores)
        self._rest = RestLearner.of(kept.rest, now)
        self._last: Mapping[int, TaskMetrics] = {}
        self._begin: tuple[float, Mapping[int, TaskMetrics]] | None = None  # of the span that is open
        self._agreements: tuple[Agreement, ...] = ()
        self._lagging: frozenset[str] = frozenset()  # components of whose replicas one lagged in the newest span

    # --- facts

    def observe(
        self, samples: Mapping[int, TaskMetrics], slots: Mapping[int, Slot], service: Mapping[str, float], now: float
    ) -> bool:
        """The tasks' newest measurements; whether a span has ended, so that more is known.

        `slots`: task -> slot as Storm has it. `service`: component -> tuples/s of one busy replica, as last measured.
        """
        self._transfers.add(self._last, samples, slots)
        self._last = dict(samples)
        if self._begin is None:
            self._begin = (now, self._last)
        elif now - self._begin[0] >= SPAN_S:
            self._span(self._begin[1], self._last, service, now)
            self._begin = (now, self._last)
            return True
        return False

    def compare(self, measured_s: float, modelled_s: float, now: float) -> None:
        """The time from source to sink at the end of a span, and as the policy models it for what is in force; s."""
        self._rest.add(measured_s, modelled_s, now)

    def forget(self) -> None:
        """The open span is none: a reconfiguration was in it, or figures that cannot be."""
        self._begin, self._lagging = None, frozenset()

    def ended(self, journal: Journal) -> None:
        """A reconfiguration is over; one of which the record already knows counts no second time."""
        if journal.result != DONE or journal.epoch <= self._known_epoch:
            return
        self._epoch = max(self._epoch, journal.epoch)
        if journal.kind == "handover":
            if journal.old_tables != journal.new_tables:  # else warm tasks alone, for which no tuple waits
                self._costs.add(journal.exported, journal.waited)
        elif (restart := restart_of(journal)) is not None:
            self._restarts.append(restart)

    def _span(
        self, old: Mapping[int, TaskMetrics], new: Mapping[int, TaskMetrics], service: Mapping[str, float], now: float
    ) -> None:
        stays: dict[str, list[Stay]] = {}
        lagging: set[str] = set()
        for task, after in sorted(new.items()):
            before = old.get(task)
            if before is None or before.pid != after.pid or after.t <= before.t:
                continue
            if after.busy_s - before.busy_s > MOST_BUSY * (after.t - before.t):  # timed or not: few of its reads are
                lagging.add(after.component)
            if (stay := stay_of(before, after)) is not None:
                stays.setdefault(after.component, []).append(stay)
                self._curves.setdefault(after.component, CurveLearner()).add(stay, now)
        self._agreements = tuple(
            _agreement(name, stays[name], self._curves[name], 1.0 / service[name]) for name in sorted(stays)
            if name in service
        )  # fmt: skip
        lagging.update(name for name, ones in stays.items() if any(stay.long for stay in ones))
        self._lagging = frozenset(lagging)
        processed, received = _counts(old, new)
        for stream, learner in self._selectivities.items():
            if stream[1] not in self._lagging or not learner.known:  # else it was sent more, or less if it catches up
                learner.add(processed.get(stream[0], 0), received.get(stream, 0), now)

    # --- results

    def record(self, topology_id: str, service: Mapping[str, float], now: float) -> LearntRecord:
        """All that it goes on from. `service`: component -> tuples/s of one busy replica, as last measured."""
        selectivities = {stream: learner.kept() for stream, learner in self._selectivities.items()}
        return LearntRecord(
            topology_id=topology_id, at=now, epoch=self._epoch,
            service={name: rate for name, rate in service.items() if rate > 0},
            curves={name: learner.kept() for name, learner in self._curves.items() if learner.samples},
            streams={stream: kept for stream, kept in selectivities.items() if kept[0]},
            stores=self._transfers.kept(), rest=self._rest.kept(), handovers=self._costs.kept(),
            restarts=tuple((one.started, one.pause_s) for one in self._restarts),
        )  # fmt: skip

    @property
    def handover_cost(self) -> HandoverCost:
        """As estimated."""
        return self._costs.fit()

    @property
    def handovers(self) -> tuple[int, float | None]:
        """Number of handovers behind that, and their median distance from it, s."""
        return len(self._costs), self._costs.off_s()

    def learnt(self, service: Mapping[str, float], age_s: float = 0.0) -> Learnt:
        """All the rest. `service`: component -> tuples/s of one busy replica, as last measured; `age_s`: since it was
        learnt."""
        curves = {name: learner.fit(1.0 / service[name]) for name, learner in self._curves.items() if name in service}
        ratios = {stream: learner.fit() for stream, learner in self._selectivities.items()}
        return Learnt(
            curves={name: curve for name, curve in curves.items() if curve is not None},
            selectivities={stream: ratio for stream, ratio in ratios.items() if ratio is not None},
            stores=self._transfers.fit(),
            restarts=tuple(self._restarts),
            rest=self._rest.fit(),
            origin=Origin(age_s=age_s, handovers=len(self._costs)),
        )

    def completed(self, rates: Rates) -> Rates:
        """The rates, with those of silent streams, and of streams into components that lag, as predicted."""
        ratios = {stream: learner.fit() for stream, learner in self._selectivities.items()}
        known = {stream: ratio for stream, ratio in ratios.items() if ratio is not None}
        return completed(rates, known, self._streams, self._lagging)

    @property
    def agreements(self) -> tuple[Agreement, ...]:
        """Of the components whose tuples were timed in the newest span, by name."""
        return self._agreements


def stay_of(before: TaskMetrics, after: TaskMetrics) -> Stay | None:
    """The stay of a task's tuples between two looks at one process; None if none was timed."""
    tuples, processed = after.sojourns - before.sojourns, after.processed - before.processed
    busy_s = after.busy_s - before.busy_s
    if tuples <= 0 or processed <= 0 or busy_s <= 0:
        return None
    return Stay(
        tuples=tuples, sojourn_s=(after.sojourn_s - before.sojourn_s) / tuples, service_s=busy_s / processed,
        busy=busy_s / (after.t - before.t), span_s=after.t - before.t,
    )  # fmt: skip


def _counts(
    old: Mapping[int, TaskMetrics], new: Mapping[int, TaskMetrics]
) -> tuple[Mapping[str, int], Mapping[tuple[str, str], int]]:
    """By component, tuples that it has processed; by stream, tuples received; of processes seen twice."""
    processed: Counter[str] = Counter()
    received: Counter[tuple[str, str]] = Counter()
    for task, after in new.items():
        before = old.get(task)
        if before is None or before.pid != after.pid:
            continue
        processed[after.component] += after.processed - before.processed
        for source, count in after.received.items():
            received[source, after.component] += count - before.received.get(source, 0)
    return processed, received


def _agreement(name: str, stays: Sequence[Stay], learner: CurveLearner, service_s: float) -> Agreement:
    tuples = sum(stay.tuples for stay in stays)
    curve = learner.fit(service_s)

    def mean(values: Iterable[float]) -> float:
        return sum(stay.tuples * value for stay, value in zip(stays, values, strict=True)) / tuples

    busy = [min(stay.busy, 0.999) for stay in stays]
    learnt = None if curve is None else mean(curve.response_s(rho / service_s) for rho in busy)
    error = None if curve is None else mean(curve.error_s(rho / service_s) for rho in busy)
    return Agreement(
        component=name, utilisation=mean(busy), measured_s=mean(stay.sojourn_s for stay in stays),
        mm1_s=mean(service_s / (1.0 - rho) for rho in busy), learnt_s=learnt, error_s=error,
        samples=learner.samples, low=learner.low if learner.samples else 0.0, high=learner.high,
    )  # fmt: skip
