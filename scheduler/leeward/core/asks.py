"""Subtasks on their way to a topology, and readings on their way back: the Redis streams NAME:asks and NAME:answers.

Domains write asks and read answers (`adapters/topology_node.py`), topologies the other way round (`bolts/sensing`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

#: Entries that each of the two streams keeps, about.
MOST = 10_000
#: Ids that a topology remembers as answered: more than the asks that it may read twice, with those that overtook them.
REMEMBERED = 4 * MOST


def asks_of(name: str) -> str:
    """The stream of asks."""
    return f"{name}:asks"


def answers_of(name: str) -> str:
    """The stream of answers."""
    return f"{name}:answers"


class Ask(NamedTuple):
    """A subtask; times in s on the wall clock."""

    id: str  #: of no other subtask
    query: int  #: its number at its provider; below 0: the domain measures its node
    arrived: float
    due: float  #: when the task is to be answered
    unloaded: float  #: the time that its task takes on idle nodes, s

    def to_fields(self) -> dict[Any, Any]:
        """Of its entry; times to the microsecond, which is what a float of today's dates can hold."""
        rounded = {name: round(getattr(self, name), 6) for name in ("arrived", "due", "unloaded")}
        return {"id": self.id, "query": self.query, **rounded}


def ask_of(fields: Mapping[bytes, bytes]) -> Ask | None:
    """The ask in an entry; None if it is none."""
    try:
        times = [float(fields[name]) for name in (b"arrived", b"due", b"unloaded")]
        ask = Ask(fields[b"id"].decode(), int(fields[b"query"]), *times)
    except (KeyError, ValueError):
        return None
    return ask if all(map(math.isfinite, times)) else None


def answer_fields(ask: str, reading: str) -> dict[str, str]:
    """Of an answer's entry; the reading as text, empty if there is none."""
    return {"id": ask, "reading": reading}


def answer_of(fields: Mapping[bytes, bytes]) -> tuple[str, float | None]:
    """The ask's id and the reading of an entry; None if there is none."""
    ask = fields.get(b"id", b"").decode(errors="replace")
    try:
        reading = float(fields[b"reading"])
    except (KeyError, ValueError):
        return ask, None
    return ask, reading if math.isfinite(reading) else None
