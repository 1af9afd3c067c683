"""Rows and rate of the query 1 benchmark."""

from __future__ import annotations

import gzip

import pytest

from bolts.query1.reference import reference_rows
from tests.bench.query1_run import PULSE_S, SPAN_S, Stencil, measured, prepare, repeated


def row(pickup: str, dropoff: str, lon: str = "-73.956528") -> str:
    return f"m,h,2013-01-01 {pickup},2013-01-01 {dropoff},1,0.44,{lon},40.7,-73.96,40.7,CSH,0,0,0,0,0,0"


LINES = [
    row("00:00:30", "00:20:00", "-73.9"),
    row("00:00:00", "00:00:10"),
    row("00:00:00", "00:44:59", "x"),
    "no row",
]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    return path


def test_rows_come_again_with_later_times_by_dropoff(data):
    rows = prepare(data, repeats=3)
    assert len(rows) == 9 and list(rows) == list(rows)
    assert [line for _, line in rows][:4] == [LINES[1], LINES[0], LINES[2], row("00:46:00", "00:46:10")]
    dropoffs = [t for t, _ in rows]
    assert dropoffs == sorted(dropoffs) and dropoffs[3:6] == [t + SPAN_S for t in dropoffs[:3]]


def test_the_results_are_the_references_on_the_same_rows(data, tmp_path):
    rows = prepare(data, repeats=40)  # beyond midnight
    plain = tmp_path / "rows.csv"
    plain.write_text("".join(f"{line}\n" for _, line in rows))
    assert list(zip(rows.numbers, rows.texts, strict=True)) == list(reference_rows([plain], per="pulse"))
    assert rows.texts[-1].startswith("2013-01-02 ")


def test_repetitions_may_not_overlap():
    with pytest.raises(SystemExit, match="overlap"):
        list(repeated([Stencil(0, 0, "", ""), Stencil(SPAN_S, 0, "", "")], 2))


def test_what_counts_begins_behind_the_first_share_of_the_results():
    results = [(number, 100.0 + number / 2) for number in range(10)]
    dropoffs = range(0, 12 * PULSE_S, PULSE_S // 4)
    assert measured(results, dropoffs, 0.2) == (4 * 7, 3.5)
