"""The content of a folder of slices: `manifest.json`, written last, so that a folder without it is unfinished."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leeward.replay.errors import ReplayError

VERSION = 1
NAME = "manifest.json"
SLICES = "slices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A piece of data time whose rows lie in one Parquet folder, sorted by sequence number."""

    start_s: int  #: data time of its start, epoch seconds, a multiple of the slice's length
    first_seq: int  #: sequence number of its first row; the next slice continues without a gap
    rows: int  #: at least 1: empty slices are not listed

    @property
    def last_seq(self) -> int:
        """Sequence number of its last row."""
        return self.first_seq + self.rows - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input file and what became of its rows."""

    name: str
    rows: int  #: rows kept
    bad: dict[str, int]  #: rows left out, by reason (`rows.BadRow`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole folder."""

    rows: int  #: rows in all slices; sequence numbers are 1..rows
    slice_minutes: int
    first_s: int  #: dropoff of the first row, epoch seconds
    last_s: int  #: dropoff of the last row
    bad: dict[str, int]  #: rows left out of all sources, by reason
    digest: str  #: names the data: from the rows and their numbers when prepared, from the settings when generated
    slices: tuple[Slice, ...]  #: ascending in time
    sources: tuple[Source, ...]
    generator: dict[str, Any] | None = None  #: the generator's settings, None for prepared files

    def write(self, folder: Path) -> None:
        """Put it into `folder` in one step."""
        document = {"version": VERSION, **asdict(self)}
        document["slices"] = [[piece.start_s, piece.first_seq, piece.rows] for piece in self.slices]
        temporary = folder / f".{NAME}.tmp"
        temporary.write_text(json.dumps(document, indent=1) + "\n")
        os.replace(temporary, folder / NAME)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared folder. Raises ReplayError: not there, damaged, or of another version."""
    path = folder / NAME
    remedy = f"Make the folder with: leeward replay prepare CSV... --out {folder}"
    try:
        document = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise ReplayError(
            f"{folder} has no {NAME}: nothing was prepared there, or it was cut short.", remedy=remedy
        ) from None
    except ValueError as error:
        raise ReplayError(f"{path} is not JSON: {error}.", remedy=remedy) from None
    version = document.pop("version", None)
    if version != VERSION:
        raise ReplayError(f"{path} field 'version' is {version!r}, this program reads {VERSION}.", remedy=remedy)
    try:
        document["slices"] = tuple(Slice(start_s=s, first_seq=q, rows=n) for s, q, n in document["slices"])
        document["sources"] = tuple(Source(**source) for source in document["sources"])
        return Manifest(**document)
    except (KeyError, TypeError, ValueError) as error:
        raise ReplayError(f"{path} is damaged: {error}.", remedy=remedy) from None


def number_slices(counts: dict[int, int]) -> tuple[Slice, ...]:
    """Gapless sequence numbers from 1 for `counts` (slice start in epoch seconds -> rows)."""
    slices: list[Slice] = []
    next_seq = 1
    for start_s, rows in sorted(counts.items()):
        if rows:
            slices.append(Slice(start_s=start_s, first_seq=next_seq, rows=rows))
            next_seq += rows
    return tuple(slices)


def digest_of(*parts: object) -> str:
    """A short name for data described by JSON values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=asdict)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def claim_folder(folder: Path) -> None:
    """Make `folder` ready for new slices; slices of an earlier preparation are no longer valid from here on.

    Raises ReplayError when it holds something that replay did not write.
    """
    if folder.exists() and not folder.is_dir():
        raise ReplayError(f"--out {folder} is a file.", remedy="Name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    foreign = sorted(p.name for p in folder.iterdir() if p.name not in (NAME, SLICES) and not p.name.startswith("."))
    if foreign:
        raise ReplayError(
            f"--out {folder} holds other files ({', '.join(foreign[:3])}).",
            remedy="Name a new or empty folder.",
        )
    (folder / NAME).unlink(missing_ok=True)
