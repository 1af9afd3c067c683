"""The newest result of a topology as a picture: arrows over a grid, which the service's page draws.

The service knows no application. A sink sets `self.view`; its task publishes it with its measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: More arrows, and longer texts, are cut off.
MOST_ARROWS, MOST_LETTERS = 50, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From one cell to another; x grows to the right, y downwards, both from 0 to the view's width and height."""

    start: tuple[float, float]
    end: tuple[float, float]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The most important arrow first."""

    title: str
    note: str = ""  #: the time of the data, say
    width: float  #: cells
    height: float  #: cells
    arrows: tuple[Arrow, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        arrows = [[*arrow.start, *arrow.end, arrow.label[:MOST_LETTERS]] for arrow in self.arrows[:MOST_ARROWS]]
        return {
            "title": self.title[:MOST_LETTERS], "note": self.note[:MOST_LETTERS], "width": self.width,
            "height": self.height, "arrows": arrows,
        }  # fmt: skip

    @classmethod
    def of(cls, document: object) -> View | None:
        """None for what is no view; arrows that lie outside are left out."""
        if not isinstance(document, Mapping):
            return None
        try:
            width, height = (_length(document[name]) for name in ("width", "height"))
            given = [_arrow(*one) for one in document["arrows"][:MOST_ARROWS]]
            title, note = (str(document[name])[:MOST_LETTERS] for name in ("title", "note"))
        except (KeyError, TypeError, ValueError, OverflowError):  # the last: an int of hundreds of digits
            return None
        inside = tuple(one for one in given if all(_holds(place, width, height) for place in (one.start, one.end)))
        return cls(title=title, note=note, width=width, height=height, arrows=inside)


def _arrow(x1: object, y1: object, x2: object, y2: object, label: object) -> Arrow:
    start, end = (_number(x1), _number(y1)), (_number(x2), _number(y2))
    return Arrow(start=start, end=end, label=str(label)[:MOST_LETTERS])


def _holds(place: tuple[float, float], width: float, height: float) -> bool:
    return 0 <= place[0] <= width and 0 <= place[1] <= height


def _length(value: object) -> float:
    found = _number(value)
    if found <= 0:
        raise ValueError(f"{value!r} is no length")
    return found


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)
