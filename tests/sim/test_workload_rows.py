"""Rows in a file: they come back as they were, and a file that holds something else is refused by line and field."""

from __future__ import annotations

import json
import math

import pytest

from leeward.core.fields import FieldError
from leeward.core.plan import Slot
from leeward.core.workload import Interval
from leeward.sim.workload.rows import RowsFile, document_of
from leeward.sim.workload.summary import interval_line_of, line_of, summary_of, table_text

ABOUT = {"workload": "chains", "seed": 1}
FIRST = Interval(
    interval=0,
    arrived=("t0", "t1"),
    refused={"t1": "no room"},
    active=1,
    makespan_s=0.1 + 0.2,
    violations=2,
    moves=0,
    stabilization_s=0.0,
    plan_s=0.004,
    placed={"t0": {"c0": Slot("edge-1", 6700), "c1": Slot("::1", 6701)}},
)
SECOND = Interval(
    interval=1,
    departed=("t1",),
    active=1,
    makespan_s=0.5,
    violations=0,
    moves=3,
    stabilization_s=math.inf,
    plan_s=0.002,
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "out" / "rows.jsonl"
    with RowsFile(path, ABOUT) as rows:
        assert rows.done("p") == ()
        rows.add("p", FIRST)
        rows.add("q", FIRST)
        rows.add("p", SECOND)
    return path


def test_rows_come_back_as_they_were(path):
    with RowsFile(path, ABOUT) as rows:
        assert (rows.done("p"), rows.done("q"), rows.done("r")) == ((FIRST, SECOND), (FIRST,), ())
        rows.add("q", SECOND)
    with RowsFile(path, ABOUT) as rows:
        assert rows.done("q") == (FIRST, SECOND)


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_line_that_was_being_written_is_dropped(path, kept):
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + last[:kept])
    with RowsFile(path, ABOUT) as rows:
        assert rows.done("p") == (FIRST,)
        rows.add("p", SECOND)
    assert path.read_bytes() == b"".join([*lines, last])


def test_a_first_line_that_was_being_written_is_written_again(path):
    head = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(head[:10])
    with RowsFile(path, ABOUT) as rows:
        assert rows.done("p") == ()
    assert path.read_bytes() == head


def changed(position, **values):
    def change(lines):
        document = json.loads(lines[position])
        return [*lines[:position], json.dumps({**document, **values}), *lines[position + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(0, seed=2), "seed = 2: its rows are of another run: here it is 1. Name another file, or do that run."),
        (changed(0, leeward_rows=9), "leeward_rows = 9: its rows are of another run"),
        (lambda lines: ["[]", *lines], ":1 = []: this is no file of rows. Name another file"),
        (lambda lines: [*lines, "{"], ":5 = b'{': is not JSON"),
        (changed(3, interval=5), ":4.interval = 5: the next row of policy p is that of interval 1"),
        (changed(1, moves=1.5), ":2.moves = 1.5: must be a whole number"),
        (changed(1, arrived="t0"), ":2.arrived = 't0': must be a list"),
        (changed(1, placed={"t0": {"c0": "edge-1"}}), ":2.placed.t0.c0 = 'edge-1': is no slot. Write node:port."),
        (changed(1, colour="red"), ":2.colour = 'red': unknown key"),
    ],
)
def test_another_file_is_refused_and_left_as_it_is(path, change, said):
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    before = path.read_bytes()
    with pytest.raises(FieldError) as caught:
        RowsFile(path, ABOUT)
    assert said in str(caught.value)
    assert path.read_bytes() == before


def test_a_text_without_an_end_of_line_is_no_file_of_rows(path):
    path.write_text("a letter")
    with pytest.raises(FieldError, match="this is no file of rows"):
        RowsFile(path, ABOUT)
    assert path.read_text() == "a letter"


def test_an_infinite_time_is_null_in_json():
    assert document_of(SECOND)["stabilization_s"] is None
    assert json.dumps(document_of(FIRST), allow_nan=False)


def test_a_summary_is_of_all_rows():
    found = summary_of([FIRST, SECOND])
    assert found == {
        "intervals": 2,
        "arrivals": 2,
        "refused": 1,
        "active": {"mean": 1.0, "most": 1},
        "makespan_s": {"mean": pytest.approx(0.4), "most": 0.5},
        "plan_s": {"median": pytest.approx(0.003), "p99": 0.004, "most": 0.004},
        "moves": {"all": 3, "most": 3},
        "stabilization_s": {"mean": None, "most": None},
        "violations": 2,
    }
    line = line_of("p", found)
    assert line["refused"] == "1 of 2" and line["stabilization, s"] == "never"
    assert line["plan, ms"] == "3.00" and line["makespan, s"] == "0.4000"


def test_99_of_100_plans_take_the_99th_percentile_at_most():
    fields = {f: getattr(SECOND, f) for f in Interval.__slots__}
    rows = [Interval(**{**fields, "plan_s": float(at)}) for at in range(1, 101)]
    assert summary_of(rows)["plan_s"] == {"median": 50.5, "p99": 99.0, "most": 100.0}


def test_a_row_as_a_line_names_its_event():
    assert interval_line_of(FIRST)["event"] == "+t0 +t1"
    assert interval_line_of(SECOND)["event"] == "-t1"
    assert interval_line_of(FIRST)["refused"] == "1"
    many = interval_line_of(Interval(**{**{f: getattr(FIRST, f) for f in Interval.__slots__}, "arrived": tuple("abc")}))
    assert many["event"] == "+3 -0"


def test_a_table_is_as_wide_as_its_cells():
    assert table_text([{"a": "x", "figure": "1"}, {"a": "longer", "figure": "20"}]) == (
        "a       figure\nx            1\nlonger      20\n"
    )
