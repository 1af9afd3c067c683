"""The single-process reference and its command line, on the hand-made vectors, real rows and bad input."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime

import pytest
import typer
from typer.testing import CliRunner

from bolts.query1.grid import Grid
from bolts.query1.reference import read_rides, reference_rows, rows_per_event, rows_per_pulse
from bolts.reference import InputError, Line, read_lines
from leeward.cli.reference import register
from tests.helpers.shared_folder import RIDES, TAXI, needs

VECTOR_IN, VECTOR_OUT = TAXI / "oracle" / "mang_q1_input.csv", TAXI / "oracle" / "mang_q1_output.csv"

needs_taxi = needs(TAXI)


def csv_line(time: str, start: tuple[int, int] = (1, 1), end: tuple[int, int] = (1, 1), **columns: str) -> str:
    """A row with pickup = dropoff = `time` of 2013-01-01 between cells (east, south); `c6` sets column 6."""
    grid = Grid()
    degrees = [
        f"{degree:.6f}"
        for east, south in (start, end)
        for degree in (grid.lon + (east - 1) * grid.cell_lon, grid.lat - (south - 1) * grid.cell_lat)
    ]
    values = ["m", "h", *[f"2013-01-01 {time}"] * 2, "0", "0", *degrees, "CSH", *["0"] * 6]
    for name, value in columns.items():
        values[int(name[1:])] = value
    return ",".join(values)


def rides(*lines: str, sort: bool = False):
    numbered = [Line("f.csv", number, text) for number, text in enumerate(lines, 1)]
    return read_rides(numbered, grid=Grid(), rejects=Counter(), sort=sort)


def routes(results) -> list[list[str]]:
    """Of each row its routes as `from>to`, without the NULLs."""
    cells = [[cell for cell in result.row.split(",")[2:] if cell != "NULL"] for result in results]
    return [[f"{row[i]}>{row[i + 1]}" for i in range(0, len(row), 2)] for row in cells]


def run(*args: object):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["reference", "query1", *map(str, args)])


@needs_taxi
def test_the_hand_made_vectors():
    result = run(VECTOR_IN, "--cell-lon-m-per-deg", 84_380, "--cell-lat-m-per-deg", 110_540)
    expected = [line.replace(".0,", ",") for line in VECTOR_OUT.read_text().splitlines() if line]  # "00:02:00.0"
    assert result.exit_code == 0
    assert result.stdout.splitlines() == expected and len(expected) == 12


@needs_taxi
def test_the_hand_made_vectors_have_other_cells_on_the_challenges_grid():
    own = routes(reference_rows([VECTOR_IN], per="event"))
    assert own[0] == ["1.1>155.162"]
    assert [len(row) for row in own] == [*range(1, 11), 10, 1]


@needs_taxi
def test_the_real_rows():
    rejects: Counter[str] = Counter()
    events = list(reference_rows([RIDES], per="event", rejects=rejects))
    pulses = list(reference_rows([RIDES], per="pulse"))
    assert rejects == {"outside": 128}
    assert (len(events), len(pulses)) == (546, 44)
    assert all(row.count(",") + row.count("NULL") == 21 for _, row in [*events, *pulses])


@needs_taxi
def test_several_files_are_read_in_order(tmp_path):
    with gzip.open(RIDES, "rt") as file:
        lines = file.readlines()
    (tmp_path / "a.csv").write_text("".join(lines[:3000]))
    with gzip.open(tmp_path / "b", "wt") as file:  # gzip is known by its content
        file.writelines(lines[3000:])
    parts = [tmp_path / "a.csv", tmp_path / "b"]
    assert list(reference_rows(parts, per="pulse")) == list(reference_rows([RIDES], per="pulse"))
    assert len(list(read_lines(parts))) == 7068


def test_ties_go_to_the_most_recent_row():
    lines = [csv_line("00:00:01", end=(e, 1)) for e in (1, 2, 3, 2, 1)]
    assert routes(rows_per_event(rides(*lines)))[-1] == ["1.1>1.1", "1.1>2.1", "1.1>3.1"]


def test_rows_of_one_second_keep_the_order_of_the_input():
    lines = [csv_line("00:00:01", end=(e, 1)) for e in (5, 9, 7)]
    assert routes(rows_per_event(rides(*lines)))[-1] == ["1.1>7.1", "1.1>9.1", "1.1>5.1"]


def test_the_window_is_open_at_its_beginning():
    stays = rows_per_event(rides(csv_line("00:00:01"), csv_line("00:30:00", end=(2, 2))))
    assert routes(stays)[-1] == ["1.1>2.2", "1.1>1.1"]
    leaves = rows_per_event(rides(csv_line("00:00:00"), csv_line("00:30:00", end=(2, 2))))
    assert routes(leaves)[-1] == ["1.1>2.2"]


def test_expiry_shows_with_an_event_and_may_bring_back_the_eleventh():
    eleven = [csv_line("00:00:00", end=(1, 1))] + [csv_line("00:01:00", end=(e, 1)) for e in range(2, 12)]
    rows = routes(rows_per_event(rides(*eleven, csv_line("00:30:30", end=(11, 1)), csv_line("00:31:00", end=(11, 1)))))
    assert len(rows) == 12
    assert rows[-1] == ["1.1>11.1"]


def test_nothing_is_output_while_the_ten_stay():
    assert len(list(rows_per_event(rides(*[csv_line("00:00:01")] * 5)))) == 1


def test_a_pulse_closes_each_interval_that_held_rows():
    lines = [csv_line(t, end=(e, 1)) for t, e in [("00:00:10", 1), ("00:00:59", 2), ("00:01:00", 3), ("00:07:00", 4)]]
    results = list(rows_per_pulse(rides(*lines), pulse_s=60))
    first = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()) // 60
    assert [result.number - first for result in results] == [0, 1, 7]
    assert results[0].row.startswith("2013-01-01 00:00:59,2013-01-01 00:00:59,1.1,2.1,1.1,1.1,NULL")


def test_the_window_of_a_pulse_ends_with_its_interval():
    lines = [csv_line("00:00:00"), csv_line("00:29:00", end=(2, 2))]
    assert routes(rows_per_pulse(rides(*lines), pulse_s=60))[-1] == ["1.1>2.2"]
    assert routes(rows_per_pulse(rides(*lines), pulse_s=1))[-1] == ["1.1>2.2", "1.1>1.1"]


def test_rejected_rows_are_counted_and_change_nothing():
    bad = [
        "",
        csv_line("25:00:00"),
        csv_line("00:00:09", c2="x"),
        csv_line("00:00:09", c6="x"),
        csv_line("00:00:09", (0, 1)),
    ]
    good = [csv_line("00:00:01"), csv_line("00:02:00", end=(2, 2))]
    rejects: Counter[str] = Counter()
    mixed = read_rides((Line("f", 1, t) for t in [bad[0], good[0], *bad, good[1]]), grid=Grid(), rejects=rejects)
    assert list(rows_per_pulse(mixed, pulse_s=60)) == list(rows_per_pulse(rides(*good), pulse_s=60))
    assert rejects == {"columns": 2, "date": 1, "impossible date": 1, "number": 1, "outside": 1}


def test_unsorted_rows_are_an_error_that_names_the_line():
    lines = [csv_line("00:00:05"), csv_line("23:00:00", (0, 1)), csv_line("00:00:04")]
    with pytest.raises(InputError, match=r"f\.csv, line 3: dropoff '2013-01-01 00:00:04'.*--sort"):
        list(rides(*lines))


def test_sorting_keeps_the_order_of_the_input_within_a_second():
    lines = [
        csv_line("00:00:05", end=(1, 1)),
        csv_line("00:00:04", end=(2, 1)),
        csv_line("00:00:05", end=(3, 1)),
    ]
    assert [ride.route for ride in rides(*lines, sort=True)] == ["1.1>2.1", "1.1>1.1", "1.1>3.1"]


def test_the_command_counts_bad_rows_on_standard_error(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([csv_line("00:00:01"), "a,b", csv_line("00:00:09", (0, 1))]))
    result = run(file, "--per", "pulse", "--pulse-s", 30, "--count-bad")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["2013-01-01 00:00:01,2013-01-01 00:00:01,1.1,1.1" + ",NULL" * 9]
    assert result.stderr.splitlines() == ["columns: 1", "outside: 1"]


def test_the_command_says_what_is_wrong_with_a_file(tmp_path):
    missing = run(tmp_path / "none.csv")
    assert missing.exit_code == 1 and "none.csv" in missing.stderr and "Traceback" not in missing.stderr
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(csv_line("00:00:01").encode() * 100)[:-20])
    assert run(cut).exit_code == 1 and "cut.csv.gz" in run(cut).stderr
    unsorted = tmp_path / "unsorted.csv"
    unsorted.write_text("\n".join([csv_line("00:00:02"), csv_line("00:00:01")]))
    assert "line 2" in run(unsorted).stderr
    assert run(unsorted, "--sort").exit_code == 0


def test_the_command_wants_both_sizes_of_a_cell(tmp_path):
    result = run(tmp_path / "x", "--cell-lon-m-per-deg", 84_380)
    assert result.exit_code == 2 and "together" in result.stderr
