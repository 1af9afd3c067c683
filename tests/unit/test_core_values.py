"""Keys, tables, placements and records: the values that Python, Java and ZooKeeper share."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.control import ControlRecord, Phase, Report
from leeward.core.errors import KeyTypeError, PlanError, ProtocolError
from leeward.core.journal import Journal
from leeward.core.keys import GROUPS, key_group
from leeward.core.outcome import Ending, Outcome
from leeward.core.plan import Placement, Slot, deployment, diff
from leeward.core.table import check_table, even_table, owned, redistribute, replicas, tables_text

TESTS = Path(__file__).parents[1]
GOLDEN = sorted((TESTS / "plans").glob("*.json"))


def test_key_groups_are_those_of_the_java_groupings():
    vectors = json.loads((TESTS / "vectors/key_groups.json").read_text())
    assert vectors["groups"] == GROUPS and len(vectors["vectors"]) > 20
    for vector in vectors["vectors"]:
        key = tuple(vector["key"])
        assert key_group(key) == vector["group"], vector
        assert len(key) > 1 or key_group(*key) == vector["group"], vector


@pytest.mark.parametrize("key", [True, 1.5, None, b"x", ["a"], (), ("a", True), (("a",),)])
def test_other_keys_are_refused_by_value_and_type(key):
    with pytest.raises(KeyTypeError, match=type(key).__name__):
        key_group(key)


def test_there_are_golden_plans_of_both_kinds():
    assert len(GOLDEN) >= 12
    assert {json.loads(path.read_text())["expect"]["fits"] for path in GOLDEN} == {True, False}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_plans_read_as_in_java(path):
    golden = json.loads(path.read_text())
    text = golden["plan"] if isinstance(golden["plan"], str) else json.dumps(golden["plan"])
    expect = golden["expect"]
    if not expect["valid"]:
        with pytest.raises(PlanError):
            Placement.from_json(text)
        return
    placement = Placement.from_json(text)
    assert Placement.from_json(placement.to_json()) == placement
    if expect["fits"]:
        wanted = {task: Slot(slot["node"], slot["port"]) for slot in expect["slots"] for task in slot["tasks"]}
        assert placement.slots == wanted


def test_equal_placements_are_equal_bytes():
    one = Placement(topology_id="t", epoch=1, slots={2: Slot("b", 1), 1: Slot("a", 1)})
    two = Placement(topology_id="t", epoch=1, slots={1: Slot("a", 1), 2: Slot("b", 1)})
    assert one.to_json() == two.to_json()


tasks = st.lists(st.integers(1, 40), min_size=1, max_size=8, unique=True)


@given(before=tasks, after=tasks)
def test_redistribution_is_even_and_moves_no_more_than_it_must(before, after):
    old = even_table(sorted(before))
    new = redistribute(old, after)
    shares = Counter(new)
    assert set(shares) == set(after)
    assert max(shares.values()) - min(shares.values()) <= 1
    moved = sum(was != now for was, now in zip(old, new, strict=True))
    had = Counter(owner for owner in old if owner in set(after))
    quotas = sorted(shares.values(), reverse=True)
    kept_at_best = sum(min(a, b) for a, b in zip(sorted((had[t] for t in after), reverse=True), quotas, strict=True))
    assert moved == GROUPS - kept_at_best
    assert redistribute(new, after) == new


def test_tables_name_their_faults():
    with pytest.raises(PlanError, match="3 entries"):
        check_table("count", [1, 2, 3], [1, 2, 3])
    with pytest.raises(PlanError, match="gives group 0 to 9, which is none of its tasks"):
        check_table("count", [9] * GROUPS, [1, 2])
    for nobody in (None, -1, "1", 1.0, True):
        with pytest.raises(PlanError, match=rf"'count' gives group 5 to {nobody!r}, .* Its tasks are \[1, 2\]"):
            check_table("count", [1, 2, 1, 2, 1, nobody] + [1] * (GROUPS - 6), [1, 2])
    with pytest.raises(PlanError, match="at least one task"):
        even_table([])
    assert check_table("count", [1] * GROUPS, [1, 2]) == (1,) * GROUPS


def test_table_text_is_sorted_and_complete():
    text = tables_text({"b": even_table([4]), "a": even_table([1, 2])})
    first, second = text.split(";")
    assert first.startswith("a=1,2,1,2") and second == "b=" + ",".join(["4"] * GROUPS)


def test_owned_and_replicas():
    table = even_table([5, 3])
    assert replicas(table) == (3, 5) and owned(table, 5) == tuple(range(0, GROUPS, 2)) and owned(table, 9) == ()


def test_diff_tells_growth_shrinkage_and_moves():
    slots = {1: Slot("a", 1), 2: Slot("b", 1), 3: Slot("c", 1), 4: Slot("a", 1)}
    before = deployment({"x": even_table([1]), "y": even_table([1, 2]), "z": even_table([3])}, slots)
    after = deployment({"x": even_table([1, 2]), "y": even_table([4]), "z": even_table([2])}, slots)
    assert [(c.component, c.kind, c.before, c.after) for c in diff(before, after)] == [
        ("x", "scale-out", {"a": 1}, {"a": 1, "b": 1}),
        ("y", "scale-in", {"a": 1, "b": 1}, {"a": 1}),
        ("z", "move", {"c": 1}, {"b": 1}),
    ]


def test_records_survive_their_text():
    record = ControlRecord(epoch=3, phase=Phase.PAUSE, base=1, cut=4, committed=(2, 3), tables={"a": even_table([1])})
    assert ControlRecord.from_json(record.to_json()) == record
    report = Report(task=1, component="a", error="no", bytes=2, keys=1, seconds=0.5)
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 1}', '{"version": 1, "phase": "sleep"}'])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(ProtocolError):
        ControlRecord.from_json(text)


@pytest.mark.parametrize("nobody", [None, -1])
@pytest.mark.parametrize("name", ["tables", "coming"])
def test_a_record_whose_groups_have_no_owner_is_refused(name, nobody):
    text = ControlRecord(**{name: {"count": (1, nobody) * 64}}).to_json()
    with pytest.raises(ProtocolError, match=f"field {name!r} gives group 1 of 'count' to {nobody}. Only the coord"):
        ControlRecord.from_json(text)


def test_a_newer_record_says_so():
    text = ControlRecord(version=6).to_json()
    with pytest.raises(ProtocolError, match="'version' is 6, this program reads 5"):
        ControlRecord.from_json(text)


def test_a_journal_of_an_older_release_has_its_result_as_text():
    document = json.loads(Journal(epoch=3).to_json()) | {"version": 6, "result": "aborted: a: b"}
    assert Journal.from_json(json.dumps(document)).result == Outcome(Ending.ABORTED, "a: b")
    assert Journal.from_json(json.dumps(document | {"result": ""})).result is None


def test_an_outcome_survives_its_journal_and_its_text():
    outcome = Outcome(Ending.UNDONE, "Storm: no")
    assert Journal.from_json(Journal(result=outcome).to_json()).result == outcome
    assert Outcome.from_json(outcome.to_json()) == outcome and str(outcome) == "undone: Storm: no"
    with pytest.raises(ProtocolError, match="not an outcome"):
        Outcome.from_json('{"ending": "half", "why": ""}')
