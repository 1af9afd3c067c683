"""The part that single-process references of taxi queries share: files, the order of their rows, the two readings."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from zlib import error as ZlibError

from leeward.core.errors import LeewardError

_GZIP_MAGIC = b"\x1f\x8b"


class InputError(LeewardError):
    """A file cannot be read, or its rows are not in the order of their dropoff."""


class Line(NamedTuple):
    """One line of an input file; its text without the line end."""

    path: str
    number: int  #: from 1
    text: str


class Result(NamedTuple):
    """An output row; `number` is the event's (from 1, valid rows only) or the pulse's."""

    number: int
    row: str


class DroppedOff(Protocol):
    """A valid row."""

    @property
    def dropoff(self) -> str:
        """As the file has it."""

    @property
    def dropoff_s(self) -> int:
        """Seconds since 1970."""


#: A valid row of one query.
R = TypeVar("R", bound=DroppedOff)


def read_lines(paths: Iterable[Path | str]) -> Iterator[Line]:
    """The lines of plain or gzipped files, one file after the other. Raises InputError naming the file."""
    for path in paths:
        try:
            with open(path, "rb") as probe:
                zipped = probe.read(2) == _GZIP_MAGIC
            with (gzip.open if zipped else open)(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
                for number, text in enumerate(file, 1):
                    yield Line(str(path), number, text.rstrip("\r\n"))
        except (OSError, EOFError, ZlibError) as error:
            raise InputError(
                f"input file {str(path)!r}: {error}.",
                remedy="Give CSV files of 17 columns, plain or whole gzip files.",
            ) from error


def in_order(rows: Iterable[tuple[Line, R]], *, sort: bool) -> Iterator[R]:
    """Valid rows with their lines, in order of dropoff.

    Raises InputError at the first line whose dropoff is before that of a valid row above it, unless `sort`, which reads
    everything first and keeps rows of equal dropoff in the order of the input.
    """
    if sort:
        rows = sorted(rows, key=lambda found: found[1].dropoff_s)
    latest: R | None = None
    for line, row in rows:
        if latest is not None and row.dropoff_s < latest.dropoff_s:
            raise InputError(
                f"{line.path}, line {line.number}: dropoff {row.dropoff!r} comes after {latest.dropoff!r}.",
                remedy="Sort the rows by dropoff_datetime, give the files in that order, or use --sort.",
            )
        latest = row
        yield row


def by_reading(
    per: str, pulse_s: int, *, event: Callable[[], Iterator[Result]], pulse: Callable[[], Iterator[Result]]
) -> Iterator[Result]:
    """The results of one of the two readings. Raises InputError for another one, and for pulses of less than 1 s."""
    if per == "event":
        return event()
    if per == "pulse" and pulse_s > 0:
        return pulse()
    raise InputError(
        f"reading per {per!r} with pulses of {pulse_s!r} s.",
        remedy="Read per event, or per pulse of at least 1 s.",
    )
