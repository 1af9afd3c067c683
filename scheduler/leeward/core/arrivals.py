"""Lines that the sinks of dataflows wrote on a real cluster: delays from source to sink, and each loss. Pure.

A line is `sink path number sent_us lost doubled written_us node` (`bolts/dataflow/sink.py`).  Numbers on each path from
a source to a sink are 1, 2, 3, ...

A model's makespan is the longest path of a dataflow.  Its measured counterpart: of each path the median delay of its
events, and of these the greatest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

US = 1e-6


class Arrival(NamedTuple):
    """An event at a sink."""

    sink: str
    path: str
    number: int
    sent_us: int
    lost: int
    doubled: int
    written_us: int
    node: str

    @property
    def delay_s(self) -> float:
        """From its source to its sink."""
        return (self.written_us - self.sent_us) * US


def read(lines: Iterable[str]) -> list[Arrival]:
    """The arrivals; a line that is still being written is left out."""
    found = []
    for line in lines:
        words = line.split()
        if len(words) == len(Arrival._fields):
            sink, path, number, sent_us, lost, doubled, written_us, node = words
            found.append(Arrival(sink, path, int(number), int(sent_us), int(lost), int(doubled), int(written_us), node))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Events that are missing, and that came twice, over all paths of a dataflow.

    `again`: lines that a sink wrote anew, as it was set back to a cut and its inputs came again.  They say the same, so
    a reader who goes by the numbers sees each once.
    """

    lost: int = 0
    doubled: int = 0
    again: int = 0


def faults(arrivals: Sequence[Arrival]) -> Faults:
    """By the numbers that the sinks wrote, and by what the events say of the queries on their path, sinks included."""
    lost = doubled = again = 0
    for ones in _by_path(arrivals).values():
        gaps = repeats = last = 0
        for one in ones:
            if one.number > last:
                gaps += one.number - last - 1
                last = one.number
            else:
                repeats += 1
        lost += max(gaps, max(one.lost for one in ones))
        doubled += max(one.doubled for one in ones)
        again += repeats
    return Faults(lost=lost, doubled=doubled, again=again)


def makespan_s(arrivals: Sequence[Arrival], since_us: int = 0, until_us: int | None = None) -> float | None:
    """Measured over the events that left their source in this time; None if there are none."""
    within = [one for one in arrivals if one.sent_us >= since_us and (until_us is None or one.sent_us < until_us)]
    return max((median(one.delay_s for one in ones) for ones in _by_path(within).values()), default=None)


def longest_s(arrivals: Sequence[Arrival], since_us: int, until_us: int) -> float | None:
    """The longest delay of an event that came in this time."""
    return max((one.delay_s for one in arrivals if since_us <= one.written_us < until_us), default=None)


def _by_path(arrivals: Iterable[Arrival]) -> dict[tuple[str, str], list[Arrival]]:
    """(sink, path) -> its arrivals as they came."""
    found: dict[tuple[str, str], list[Arrival]] = defaultdict(list)
    for one in arrivals:
        found[one.sink, one.path].append(one)
    return dict(found)
