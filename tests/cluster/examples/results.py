"""The examples, and what each must give when its source has sent so many tuples. Judges stock and converted ones."""

from __future__ import annotations

import difflib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import redis

FOLDER = Path(__file__).parent
STOCK, CONVERTED = FOLDER / "stock", FOLDER / "converted"
SHIPS = ("yawl", "ketch", "sloop", "cutter", "ferry", "tug", "barge")
BERTHS = ("north quay", "south quay", "mole", "dry dock", "roads")
PACKAGES = ("oakum", "pitch", "tar", "hemp", "canvas", "rivet")
#: The file that `verses` reads: each word as often as its place in the alphabet, so that no two are as frequent.
_WORDS = [chr(97 + letter) * 3 for letter in range(12)]
TEXT = "\n".join(f"The {word} and {word.upper()}" for times, word in enumerate(_WORDS) for _ in range(times))


@dataclass(frozen=True)
class Place:
    """Everything that one run of an example reads and writes."""

    folder: Path
    redis_url: str

    @property
    def options(self) -> list[str]:
        """For its submission."""
        self.file("text").write_text(TEXT)
        files = [f"examples.{name}={self.file(name)}" for name in ("end", "out", "text", "base")]
        return [*files, f"examples.redis={self.redis_url}", f"examples.key={self.folder.name}"]

    def file(self, name: str) -> Path:
        return self.folder / name

    def recorded(self) -> list[Any]:
        """Tuples at the last bolt, in the order in which they came."""
        text = self.file("out").read_text() if self.file("out").exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def sent(self) -> int | None:
        """Tuples of the source, once it has ended."""
        file = self.file("end.sent")
        return int(file.read_text()) if file.exists() else None


@dataclass(frozen=True)
class Example:
    """One of the five."""

    topology: str
    keeper: str  #: component that keeps the result
    source: str
    result: Callable[[Place], Any]
    expected: Callable[[int], Any]

    @property
    def files(self) -> tuple[str, str]:
        """Its own, in a project; `ends.py` is the test's."""
        return f"src/{self.topology.rstrip('s')}_bolts.py", f"topologies/{self.topology}.py"

    def lines(self) -> int:
        """Of the stock one, counted alike."""
        return sum(len(_code(STOCK / file)) for file in self.files)

    def lines_changed(self) -> int:
        """By the conversion: changed ones once, beside added and removed ones; no comments, imports or blank lines."""
        return sum(_changed(*(_code(project / file) for project in (STOCK, CONVERTED))) for file in self.files)


def _code(file: Path) -> list[str]:
    """Without what formatters move."""
    text = re.sub(r'^"""[^"]*"""', "", file.read_text())
    return [line for line in text.splitlines() if line.strip() and not re.match(r"from|import", line)]


def _changed(before: list[str], after: list[str]) -> int:
    found = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in found if tag != "equal")


def _series(place: Place) -> dict[str, list[int]]:
    """key -> its counts, in order."""
    series: dict[str, list[int]] = {}
    for key, count in place.recorded():
        series.setdefault(key, []).append(count)
    return series


def _ships(sent: int) -> dict[str, list[int]]:
    passed = Counter(islice(cycle(SHIPS), sent))
    steps = {ship: 2 if ship == "ferry" else 1 for ship in passed}
    return {ship: [steps[ship] * (n + 1) for n in range(times)] for ship, times in passed.items()}


def _berths_found(place: Place) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The sorted set, and the counts by berth: tasks that share it may overtake each other."""
    with redis.Redis.from_url(place.redis_url, decode_responses=True) as client:
        members = client.zrange(place.folder.name, 0, -1, withscores=True)
    return {name: int(n) for name, n in members}, {berth: sorted(all_) for berth, all_ in _series(place).items()}


def _berths(sent: int) -> tuple[dict[str, int], dict[str, list[int]]]:
    came = Counter(islice(cycle(BERTHS), sent))
    return dict(came), {berth: [*range(1, n + 1)] for berth, n in came.items()}


def _clicks_found(place: Place) -> dict[str, int]:
    """The last count of each page, -1 where counts do not grow: how many batches there are depends on ticks."""
    series = _series(place)
    return {page: all_[-1] if all_ == sorted(set(all_)) else -1 for page, all_ in series.items()}


def _clicks(sent: int) -> dict[str, int]:
    return dict(Counter(f"/page/{n * n % 11}" for n in range(sent)))


def _verses_found(place: Place) -> list[list[Any]]:
    """The last report."""
    reports = place.recorded()
    return reports[-1][0] if reports else []


def _verses(sent: int) -> list[list[Any]]:
    words = (word for line in islice(cycle(TEXT.splitlines()), sent) for word in line.lower().split())
    counts = Counter(word for word in words if word not in ("the", "and"))
    return [list(entry) for entry in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:10]]


def _parcels_found(place: Place) -> dict[str, tuple[str, int]]:
    """The table."""
    if not place.file("base").exists():
        return {}
    base = sqlite3.connect(place.file("base"), timeout=30)
    try:
        rows = base.execute("SELECT * FROM parcels").fetchall()
    except sqlite3.OperationalError:  # no table yet
        rows = []
    finally:
        base.close()
    return {package: (newest, number) for package, newest, number in rows}


def _parcels(sent: int) -> dict[str, tuple[str, int]]:
    rows: dict[str, tuple[str, int]] = {}
    for n in range(sent):
        release, which = divmod(n, len(PACKAGES))
        for more in range(1 + release % 3):
            number = rows.get(PACKAGES[which], ("", 0))[1]
            rows[PACKAGES[which]] = f"base{(which + more) % 4} (>= {release}.{more})", number + 1
    return rows


EXAMPLES = {
    example.topology: example
    for example in (
        Example("ships", "tally", "lookout", _series, _ships),
        Example("berths", "harbour", "arrivals", _berths_found, _berths),
        Example("clicks", "pages", "source", _clicks_found, _clicks),
        Example("verses", "count", "reader", _verses_found, _verses),
        Example("parcels", "rows", "descriptions", _parcels_found, _parcels),
    )
}
