"""What a fault run found: a table by kind, a document for machines, and where the seconds of slow recoveries went."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.cluster.faults.schedule import Fault

#: Bounds of each recovery and of their median, in seconds.
RECOVERY_S, MEDIAN_S = 10.0, 3.0
#: Recoveries from here on are shown with what happened meanwhile.
SLOW_S = 5.0
#: A fault that makes no result come later than this did not interrupt the stream.
FELT_S = 1.0

LEGEND = """\
in handover: struck while a reconfiguration was under way
median, longest: of the recoveries; each is the longest that a result came after its sources should have sent it
caught up: from the fault to the last result that was more than a second late
control: from the fault until a reconfiguration that was asked for afterwards had been carried out
repeated: writes of results that had been written before; lost: results that never came"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one fault did. Times are seconds; of events and starts, seconds after the fault."""

    fault: Fault
    victim: str
    at: float  #: epoch seconds
    in_handover: bool  #: a reconfiguration had been asked for and was not answered
    recovery_s: float | None  #: longest that a result came after it was due; None: some never came
    silence_s: float  #: longest time without any new result
    caught_up_s: float  #: until the last new result that was more than a second late
    control_s: float | None  #: until a reconfiguration asked for afterwards was carried out
    first_new_s: float  #: until the result that was latest came
    repeated: int  #: writes of results that had been written before
    lost: int
    starts: Sequence[tuple[float, str]] = ()  #: of workers and tasks
    events: Sequence[Mapping[str, Any]] = ()  #: of both services


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run."""

    seed: int
    outcomes: Sequence[Outcome]
    rate: float
    limit: int  #: numbers that each source sent
    results: int  #: that had to come out
    missing: Sequence[str]
    wrong: Sequence[str]  #: results that are not as they must be at the end
    wrong_writes: int  #: writes that contradict what must come out
    writes: int
    repeated: int
    odd: Sequence[str]
    reconfigurations: Mapping[str, int]
    requests: Sequence[Mapping[str, Any]] = ()  #: all that were sent
    ended: Sequence[str] = ()  #: service processes that ended with no fault
    stuck: str = ""  #: why the run was given up before its last fault
    host: Mapping[str, float] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """The output equals that of the undisturbed run."""
        return not (self.stuck or self.missing or self.wrong or self.wrong_writes)

    @property
    def recoveries(self) -> list[float]:
        """In seconds; infinite where some results never came."""
        return [float("inf") if o.recovery_s is None else o.recovery_s for o in self.outcomes]


def table(result: Result) -> str:
    """For people."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in result.outcomes:
        kinds[outcome.fault.kind].append(outcome)
    head = ("kind", "faults", "in handover", "median s", "longest s", "caught up s", "control s", "repeated", "lost")
    rows = [head, *(_row(kind, kinds[kind]) for kind in sorted(kinds)), _row("all", result.outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) if not i else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([*lines, "", LEGEND, "", _felt(result), *_verdict(result)])


def slow(result: Result, over_s: float = SLOW_S) -> str:
    """What happened during each recovery longer than `over_s`."""
    lines: list[str] = []
    for outcome in result.outcomes:
        if outcome.recovery_s is None or outcome.recovery_s > over_s:
            seconds = "never" if outcome.recovery_s is None else f"{outcome.recovery_s:.1f} s"
            lines.append(f"fault {outcome.fault.number}, {outcome.fault.text} ({outcome.victim}): {seconds}")
            lines += [f"  {t:+8.2f} s  {what}" for t, what in sorted(_timeline(outcome)) if t <= _end(outcome)]
    return "\n".join(lines)


def stages(outcome: Outcome) -> dict[str, float]:
    """When a recovery by reset reached each of its stages, seconds after the fault; empty if there was no reset.

    The first reset counts, and the processes that started before it.
    """
    resets = [float(e["t"]) for e in outcome.events if e["action"] == "reset" and e["t"] > 0]
    if not resets:
        return {}
    ends = [e for e in outcome.events if e["action"] == "reconfiguration_ended" and e.get("kind") == "reset"]
    workers = [t for t, what in outcome.starts if what.startswith("worker") and 0 < t < resets[0]]
    tasks = [t for t, what in outcome.starts if not what.startswith("worker") and 0 < t < resets[0]]
    found = {
        "a worker starts": min(workers, default=None),
        "its tasks start": max(tasks, default=None),
        "the service resets": resets[0],
        "state is restored": min((float(e["t"]) for e in ends if e["t"] > resets[0]), default=None),
        "new results": outcome.first_new_s,
        "caught up": outcome.caught_up_s or None,
    }
    return {stage: t for stage, t in found.items() if t is not None}


def where(result: Result) -> str:
    """The median time at which recoveries by reset reached each stage."""
    times: dict[str, list[float]] = defaultdict(list)
    for outcome in result.outcomes:
        for stage, t in stages(outcome).items():
            times[stage].append(t)
    if not times:
        return "no fault led to a reset"
    resets = len(times["the service resets"])
    medians = ", ".join(f"{stage} {statistics.median(values):.1f}" for stage, values in times.items())
    return f"faults that led to a reset: {resets}; medians, seconds after the fault: {medians}"


def _end(outcome: Outcome) -> float:
    """What happens later is no part of the recovery."""
    return float("inf") if outcome.recovery_s is None else max(outcome.first_new_s, outcome.caught_up_s) + 0.1


def document(result: Result) -> dict[str, Any]:
    """For machines."""
    return {
        "exact": result.exact,
        "median_s": _number(statistics.median(result.recoveries)) if result.outcomes else None,
        "longest_s": _number(max(result.recoveries, default=0.0)),
        **asdict(result),
        "stages": {outcome.fault.number: stages(outcome) for outcome in result.outcomes},
    }


def _row(kind: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    recoveries = [float("inf") if o.recovery_s is None else o.recovery_s for o in outcomes]
    control = [o.control_s for o in outcomes if o.control_s is not None]
    return (
        kind,
        str(len(outcomes)),
        str(sum(o.in_handover for o in outcomes)),
        f"{statistics.median(recoveries):.1f}" if recoveries else "-",
        f"{max(recoveries):.1f}" if recoveries else "-",
        f"{max((o.caught_up_s for o in outcomes), default=0):.1f}",
        f"{max(control):.1f}" if control else "-",
        str(sum(o.repeated for o in outcomes)),
        str(sum(o.lost for o in outcomes)),
    )


def _felt(result: Result) -> str:
    """Half of the kinds need not touch the stream, so the median of all faults says little about the others."""
    felt = [recovery for recovery in result.recoveries if recovery > FELT_S]
    if not felt:
        return f"no fault made a result come more than {FELT_S:g} s late"
    median = statistics.median(felt)
    return f"results came more than {FELT_S:g} s late after {len(felt)} of the faults; their median is {median:.1f} s"


def _verdict(result: Result) -> list[str]:
    share = result.repeated / result.results if result.results else 0.0
    lines = [
        f"seed {result.seed}, {result.rate:g} tuples/s from each source, {result.limit} from each, "
        f"{result.results} results",
        f"output {'equal to' if result.exact else 'DIFFERENT from'} that of the undisturbed run: "
        f"{len(result.missing)} missing, {len(result.wrong)} wrong, {result.wrong_writes} wrong writes; "
        f"{result.repeated} of {result.writes} writes repeated ({share:.1%} of the results)",
        "reconfigurations: " + ", ".join(f"{count} {how}" for how, count in sorted(result.reconfigurations.items())),
    ]
    lines.append(where(result))
    host = ", ".join(f"{name} {value:.1f}" for name, value in result.host.items())
    lines += [f"machine: {host}"] if host else []
    lines += [f"missing: {', '.join(result.missing[:10])}"] if result.missing else []
    lines += [f"wrong: {text}" for text in [*result.wrong[:10], *result.odd[:10]]]
    lines += [f"ended by itself: {text}" for text in result.ended]
    lines += [f"given up: {result.stuck}"] if result.stuck else []
    return lines


def _timeline(outcome: Outcome) -> list[tuple[float, str]]:
    lines = [(t, f"process starts: {what}") for t, what in outcome.starts]
    counts: Counter[str] = Counter()
    for event in outcome.events:
        action = str(event["action"])
        counts[action] += 1
        rest = {k: v for k, v in event.items() if k not in ("t", "action", "topology", "topology_id", "service")}
        lines.append((float(event["t"]), f"{event['service']}: {action} {_short(rest)}"))
    lines.append((outcome.first_new_s, "the latest result is written"))
    if outcome.caught_up_s:
        lines.append((outcome.caught_up_s, "no result is more than a second late any more"))
    return lines


def _short(fields: Mapping[str, Any]) -> str:
    text = ", ".join(f"{key}={value}" for key, value in fields.items() if value not in ("", None, {}, []))
    return text if len(text) <= 200 else text[:197] + "..."


def _number(value: float) -> float | None:
    return None if value == float("inf") else value
