"""Which files to prepare, and a clear word about one that is not a taxi CSV (no Spark in here)."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from leeward.replay.errors import ReplayError
from leeward.replay.rows import COLUMNS, BadRow, judge

_SUFFIXES = (".csv", ".csv.gz")
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


def find_inputs(paths: Sequence[Path]) -> tuple[Path, ...]:
    """All files to read, in order: files as given, folders by name. Raises ReplayError."""
    if not paths:
        raise ReplayError("no CSV named.", remedy="Name files or folders of them.")
    found: list[Path] = []
    for path in paths:
        found.extend(_files_of(path))
    for path in found:
        _check_packing(path)
    names = [path.resolve() for path in found]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ReplayError(f"{twice[0]} is named twice.", remedy="Name every file once.")
    return tuple(names)


def _files_of(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ReplayError(f"{path} does not exist.", remedy="Name a CSV file (plain or .gz) or a folder of them.")
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name.lower().endswith(_SUFFIXES))
    if not files:
        raise ReplayError(
            f"folder {path} has no file that ends in .csv or .csv.gz.", remedy="Name the files one by one."
        )
    return files


def _check_packing(path: Path) -> None:
    """Spark unpacks by name, so name and content must agree."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error.strerror}.", remedy="Check its permissions.") from None
    gzipped, named = head.startswith(_GZIP), path.name.lower().endswith(".gz")
    if head.startswith(_ZIP):
        raise ReplayError(f"{path} is a zip archive.", remedy="Unpack it first (plain CSV or gzip is read).")
    if gzipped != named and head:
        state = "is gzip but its name does not end in .gz" if gzipped else "ends in .gz but is not gzip"
        raise ReplayError(f"{path} {state}.", remedy="Rename it.")


def foreign_file(path: Path) -> ReplayError:
    """The error for a file without one good row: names its first bad line and what was expected."""
    number, line, why = _first_bad(path)
    shown = line if len(line) <= 120 else line[:117] + "..."
    problem = {
        BadRow.EMPTY_LINE: "the line is empty",
        BadRow.WRONG_COLUMNS: f"{line.count(',') + 1} columns, expected {len(COLUMNS)}",
        BadRow.UNPARSABLE_DATE: "columns 3 and 4 must be dates as YYYY-MM-DD hh:mm:ss",
        BadRow.IMPOSSIBLE_DATE: "columns 3 and 4 are dates that do not exist",
    }[why]
    return ReplayError(
        f"{path} has no row that can be replayed; line {number}: {problem}: {shown!r}.",
        remedy=f"Give rows of the {len(COLUMNS)} DEBS 2015 columns, comma separated, without a header: "
        f"{', '.join(COLUMNS)}.",
    )


def _first_bad(path: Path) -> tuple[int, str, BadRow]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="latin-1") as lines:
        for number, line in enumerate(lines, 1):
            verdict = judge(line.rstrip("\n"))
            if isinstance(verdict, BadRow):
                return number, line.rstrip("\n"), verdict
    raise AssertionError(f"{path} has no bad line although Spark found only bad ones")
