"""What is a row, which files are read, and what a newcomer is told about a wrong one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from leeward.replay.errors import ReplayError
from leeward.replay.inputs import find_inputs, foreign_file
from leeward.replay.rows import COLUMNS, BadRow, epoch_s, judge, text_of

GOOD = (
    "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,"
    "2013-01-01 00:02:00,120,0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50"
)


def test_a_good_row_gives_its_dropoff() -> None:
    assert judge(GOOD) == epoch_s("2013-01-01 00:02:00") == 1_356_998_520
    assert text_of(1_356_998_520) == "2013-01-01 00:02:00"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", BadRow.EMPTY_LINE),
        ("   ", BadRow.EMPTY_LINE),
        (GOOD + ",", BadRow.WRONG_COLUMNS),
        (GOOD.replace(",CSH", ""), BadRow.WRONG_COLUMNS),
        (",".join(COLUMNS), BadRow.UNPARSABLE_DATE),
        (GOOD.replace("2013-01-01 00:02:00", "2013-01-01T00:02:00"), BadRow.UNPARSABLE_DATE),
        (GOOD.replace("2013-01-01 00:00:00", ""), BadRow.UNPARSABLE_DATE),
        (GOOD.replace("2013-01-01 00:02:00", "2013-02-30 00:02:00"), BadRow.IMPOSSIBLE_DATE),
        (GOOD.replace("2013-01-01 00:00:00", "2013-01-01 24:00:00"), BadRow.IMPOSSIBLE_DATE),
    ],
)
def test_every_bad_row_has_its_reason(line: str, reason: BadRow) -> None:
    assert judge(line) == reason


@pytest.mark.parametrize("coordinate", ["0.000000", "nonsense", "40.716976f"])
def test_coordinates_are_not_judged_here(coordinate: str) -> None:
    assert judge(GOOD.replace("40.716976", coordinate)) == 1_356_998_520


def test_a_folder_gives_its_csv_files_by_name(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "notes.txt", ".hidden"):
        data = GOOD.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert [path.name for path in find_inputs([tmp_path])] == ["a.csv.gz", "b.csv"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", gzip.compress(b"x", mtime=0), "is gzip but its name does not end in .gz"),
        ("a.csv.gz", b"plain", "ends in .gz but is not gzip"),
        ("a.csv", b"PK\x03\x04...", "zip archive"),
    ],
)
def test_packing_and_name_must_agree(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReplayError, match=words):
        find_inputs([tmp_path / name])


def test_wrong_paths_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"nowhere\.csv does not exist"):
        find_inputs([tmp_path / "nowhere.csv"])
    with pytest.raises(ReplayError, match=r"no file that ends in \.csv"):
        find_inputs([tmp_path])
    file = tmp_path / "a.csv"
    file.write_text(GOOD)
    with pytest.raises(ReplayError, match="named twice"):
        find_inputs([file, tmp_path])


def test_a_foreign_file_is_described_by_its_first_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "stations.csv"
    file.write_text("id,name,lat,lon\n1,Broadway,40.7,-74.0\n")
    error = foreign_file(file)
    assert "stations.csv" in error.message
    assert "line 1: 4 columns, expected 17: 'id,name,lat,lon'" in error.message
    assert "17 DEBS 2015 columns" in error.remedy
    assert "dropoff_datetime" in error.remedy
