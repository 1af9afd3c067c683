"""The pure parts of the fault run: what must come out, the schedule, the judge and the report."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.cluster.faults.driver import deployment
from tests.cluster.faults.ledger import Ledger, Write, key_of_id
from tests.cluster.faults.report import Outcome, Result, document, slow, stages, table, where
from tests.cluster.faults.schedule import COMPONENTS, ELASTIC, KINDS, Action, Fault, Target, schedule
from tests.cluster.faulty.src import faulty_numbers as numbers

RATE = 100.0

# --- what must come out


@pytest.mark.parametrize("source", numbers.SOURCES)
def test_every_key_occurs_once_in_a_turn(source: str):
    for turn in (1, 2):
        first = (turn - 1) * numbers.KEYS + 1
        seen = {numbers.key_of(source, n): n for n in range(first, first + numbers.KEYS)}
        assert seen.keys() == set(range(numbers.KEYS))
        assert all(numbers.number_of(source, key, turn) == n for key, n in seen.items())
        assert {numbers.turn_of(n) for n in seen.values()} == {turn}


def test_the_expected_results_are_those_of_a_plain_computation():
    counts: Counter[tuple[str, int]] = Counter()
    sums: Counter[tuple[str, int]] = Counter()
    for source in numbers.SOURCES:
        for n in range(1, 2 * numbers.KEYS + 50):
            key = numbers.key_of(source, n)
            counts[source, key] += 1
            sums[source, key] += numbers.value_of(source, n)
            assert numbers.expected(f"{source}:{n}") == f"{counts[source, key]} {sums[source, key]}"
    left, right = (numbers.number_of(source, 77, 2) for source in numbers.SOURCES)
    product = numbers.value_of("left", left) * numbers.value_of("right", right)
    assert numbers.expected("join:77:2") == f"{left} {right} {product} 2 0"


@pytest.mark.parametrize("name", ["again:left:4", "left:0", "left:x", "join:1", "join:3000:1", "join:1:0", "", "left"])
def test_other_ids_are_of_no_result(name: str):
    assert numbers.expected(name) is None


def test_the_expected_ids_are_all_counts_and_the_pairs_of_which_both_were_sent():
    ids = numbers.expected_ids({"left": 500, "right": 700})
    assert {name for name in ids if name.startswith("left:")} == {f"left:{n}" for n in range(1, 501)}
    keys = {numbers.key_of("left", n) for n in range(1, 501)} & {numbers.key_of("right", n) for n in range(1, 701)}
    assert {name for name in ids if name.startswith("join:")} == {f"join:{key}:1" for key in keys}
    assert len(numbers.expected_ids({"left": 6000, "right": 6000})) == 18000


# --- the schedule


def test_the_schedule_follows_from_the_seed_alone():
    assert schedule(5, 60) == schedule(5, 60)
    assert schedule(5, 60) != schedule(6, 60)


@pytest.mark.parametrize("count", [0, 1, 10, 13, 60])
def test_half_of_the_faults_are_aimed_at_handovers_and_no_kind_is_left_out(count: int):
    faults = schedule(3, count)
    aimed = [fault for fault in faults if fault.after_ms is not None]
    assert len(faults) == count and len(aimed) == count // 2
    assert all(fault.component in ELASTIC for fault in aimed)
    first = [(fault.action, fault.target) for fault in faults[: len(KINDS)]]
    assert len(set(first)) == len(first)


def test_a_schedule_can_be_of_some_kinds_only():
    kinds = {fault.kind for fault in schedule(3, 20, ["kill task", "restart redis"])}
    assert kinds == {"kill task", "restart redis"}
    with pytest.raises(ValueError, match=r"'kill redis' is unknown; choose from kill task, "):
        schedule(3, 20, ["kill redis"])


def test_every_component_is_struck():
    struck = {fault.component for fault in schedule(3, 60) if fault.target is Target.TASK}
    assert struck == set(COMPONENTS)


# --- requests


def test_a_request_asks_for_other_replicas_where_there_are_tasks():
    rng = random.Random(1)
    nodes = {4: "a", 5: "b", 6: "b"}
    for _ in range(50):
        wanted = deployment(rng, nodes, [4], 3)
        assert wanted != {"a": 1} and set(wanted) <= {"a", "b"}
        assert wanted.get("a", 0) <= 1 and wanted.get("b", 0) <= 2
    assert deployment(rng, {4: "a"}, [4], 1) == {"a": 1}  # there is no other


# --- the judge


class Sinks:
    """Writes what a faultless topology would, `delay_ms` after it is due."""

    def __init__(self) -> None:
        self.ledger, self.start_ms = Ledger(RATE), 1_000_000

    def due(self, name: str) -> int:
        kind, *rest = name.split(":")
        if kind == "join":
            key, turn = map(int, rest)
            return max(self.due(f"{source}:{numbers.number_of(source, key, turn)}") for source in numbers.SOURCES)
        return self.start_ms + int(int(rest[0]) * 1000 / RATE)

    def write(self, name: str, *, delay_ms: int = 5, result: str | None = None) -> None:
        due = self.due(name)
        right = numbers.expected(name)
        self.ledger.add(Write(due + delay_ms, name, right if result is None else result or "", due))

    def flow(self, first: int, last: int, *, delay_ms: int = 5, without: str = "") -> None:
        names = numbers.expected_ids({"left": last, "right": last})
        names -= numbers.expected_ids({"left": first - 1, "right": first - 1})
        for name in sorted(names - {without}, key=self.due):
            self.write(name, delay_ms=delay_ms)

    def time_of(self, n: int) -> int:
        return self.start_ms + int(n * 1000 / RATE)


def test_a_stream_without_faults_is_never_overdue():
    sinks = Sinks()
    sinks.flow(1, 2000)
    ledger = sinks.ledger
    assert ledger.started and ledger.overdue(sinks.time_of(2000)) == []
    assert (ledger.wrong, ledger.repeated, ledger.missing(2000)) == (0, 0, set())
    assert len(ledger.overdue(sinks.time_of(2110))) >= 2 * 9


def test_a_reset_before_the_first_checkpoint_begins_the_schedule_anew():
    sinks = Sinks()
    sinks.flow(1, 1000)
    sinks.start_ms += 26_000  # no checkpoint had the sources' start, so they took another one
    sinks.flow(1, 4000)
    assert sinks.ledger.overdue(sinks.time_of(4000)) == []
    assert len(sinks.ledger.overdue(sinks.time_of(4110))) >= 2 * 9


def test_the_judge_sees_a_wrong_and_an_unknown_and_a_repeated_write():
    sinks = Sinks()
    sinks.write("left:1", result="1 999999")
    sinks.ledger.add(Write(sinks.time_of(2), "again:left:2", "counted twice", sinks.time_of(2)))
    sinks.write("left:1")
    assert (sinks.ledger.wrong, sinks.ledger.repeated) == (2, 1)
    assert "left:1 = '1 999999', must be" in sinks.ledger.odd[0]


@pytest.mark.parametrize("name", ["left:1500", "join"])
def test_a_result_that_does_not_come_is_overdue_until_it_is_given_up(name: str):
    sinks = Sinks()
    if name == "join":  # the first pair due in the second half
        pairs = [other for other in numbers.expected_ids({"left": 2000, "right": 2000}) if other.startswith("join:")]
        name = max(pairs, key=sinks.due)
    sinks.flow(1, 2000, without=name)
    now = sinks.due(name) + 1001
    assert name in sinks.ledger.overdue(now) and name not in sinks.ledger.overdue(now - 2)
    assert sinks.ledger.missing(2000) == {name}
    given_up = sinks.ledger.give_up(now)
    assert given_up == [name] and sinks.ledger.lost == {name}
    assert all(key_of_id(other) != key_of_id(name) for other in sinks.ledger.overdue(sinks.time_of(9000)))


def test_a_window_measures_lateness_silence_and_repeats():
    sinks = Sinks()
    sinks.flow(1, 1000)
    struck = sinks.time_of(1000) + 50
    sinks.ledger.open(struck)
    resumed = struck + 4000
    names = numbers.expected_ids({"left": 2000, "right": 2000}) - numbers.expected_ids({"left": 990, "right": 990})
    for name in sorted(names, key=sinks.due):  # what came after the checkpoint comes again, and all of it late
        at = max(resumed, sinks.due(name) + 5)
        sinks.ledger.add(Write(at, name, numbers.expected(name) or "", sinks.due(name)))
    window = sinks.ledger.window
    assert window.latest_ms == 4040 and window.latest_at_ms == resumed  # number 1001 was due 40 ms before the fault
    assert window.silence_ms == resumed - (sinks.time_of(1000) + 5)
    assert window.repeated >= 20 and window.caught_up_ms == 4000
    sinks.ledger.open(resumed + 20_000)
    assert sinks.ledger.window.latest_ms == 0


# --- the report


def outcome(number: int, recovery_s: float | None, *, target: Target = Target.TASK) -> Outcome:
    fault = Fault(
        number=number, action=Action.KILL, target=target, component="count", pick=0.0, seconds=0.0, after_ms=None
    )
    return Outcome(
        fault=fault, victim="count pid 7", at=100.0, in_handover=False, recovery_s=recovery_s, silence_s=1.0,
        caught_up_s=2.0, control_s=1.5, first_new_s=0.5, repeated=3, lost=recovery_s is None,
        starts=[(3.0, "Count on a:1")], events=[{"t": 2.5, "action": "reset", "service": "a", "why": "asked"}],
    )  # fmt: skip


def result(*outcomes: Outcome, **changes: object) -> Result:
    values: dict = {
        "seed": 1, "outcomes": outcomes, "rate": 150.0, "limit": 10, "results": 30, "missing": (), "wrong": (),
        "wrong_writes": 0, "writes": 33, "repeated": 3, "odd": (), "reconfigurations": {"done": 4},
    }  # fmt: skip
    return Result(**values | changes)


def test_the_table_has_a_row_for_each_kind_and_one_for_all():
    text = table(result(outcome(1, 2.0), outcome(2, 6.0), outcome(3, 4.0, target=Target.NIMBUS)))
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["kill task"][2:6] == ["2", "0", "4.0", "6.0"]
    assert rows["all"][1:5] == ["3", "0", "4.0", "6.0"]
    assert "results came more than 1 s late after 3 of the faults; their median is 4.0 s" in text
    assert "output equal to that of the undisturbed run" in text and "10.0% of the results" in text


def test_a_loss_shows_in_the_verdict_and_as_a_recovery_without_end():
    lossy = result(outcome(1, None), outcome(2, 1.0), missing=["left:9"])
    assert not lossy.exact and max(lossy.recoveries) == float("inf")
    assert "DIFFERENT" in table(lossy) and "left:9" in table(lossy)
    assert document(lossy)["longest_s"] is None


@pytest.mark.parametrize("change", [{"stuck": "no result"}, {"missing": ["a"]}, {"wrong": ["a"]}, {"wrong_writes": 1}])
def test_any_difference_makes_the_output_different(change: dict):
    assert result().exact and not result(**change).exact


def test_a_slow_recovery_is_shown_with_what_happened_meanwhile():
    text = slow(result(outcome(1, 6.0), outcome(2, 1.0)))
    assert text.count("fault") == 1
    lines = text.splitlines()
    assert "+0.50 s  the latest result is written" in lines[1]
    assert "no result is more than a second late" in lines[2]
    assert len(lines) == 3  # what happens after the recovery is left out
    assert "a: reset why=asked" in slow(result(outcome(1, None)))


def test_the_stages_of_a_recovery_are_those_before_and_after_its_first_reset():
    restored = {"t": 2.9, "action": "reconfiguration_ended", "service": "a", "kind": "reset"}
    one = outcome(1, 6.0)
    one = replace(one, starts=[(0.5, "worker a:1"), (2.0, "Count on a:1"), (9.0, "Pass on a:1")], first_new_s=3.0)
    one = replace(one, events=[*one.events, restored], caught_up_s=4.0)
    assert list(stages(one).values()) == [0.5, 2.0, 2.5, 2.9, 3.0, 4.0]
    assert stages(replace(one, events=[])) == {}
    assert "faults that led to a reset: 1;" in where(result(one)) and "the service resets 2.5" in where(result(one))
    assert "no fault led to a reset" in where(result())
