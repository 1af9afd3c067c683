"""Read a document from outside, JSON say: each complaint names the field by its path, the value and the remedy.

Nothing in such a document is trusted. A system reads its instances by these functions and adds what its fields mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from leeward.core.errors import LeewardError

T = TypeVar("T")


class FieldError(LeewardError):
    """A field of a stated problem makes no sense.  `field` is a path such as `operators[2].mu`."""

    def __init__(self, field: str, value: object, reason: str, *, remedy: str) -> None:
        text = repr(value)
        shown = text if len(text) <= 80 else text[:77] + "..."
        super().__init__(f"{field} = {shown}: {reason}.", remedy=f"{remedy[0].upper()}{remedy[1:]}.")
        self.field = field
        self.value = value
        self.reason = reason


def read_json(path: Path) -> object:
    """The document in a file; raises `FieldError` where it cannot be read, is not JSON, or has a key twice."""
    try:
        document = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FieldError("file", str(path), f"cannot be read: {error}", remedy="name a readable file") from None
    return parse_json("file", document, value=str(path))


def parse_json(field: str, document: str, *, value: object = None) -> object:
    """The document in a text; raises `FieldError` where it is not JSON, or has a key twice in an object.

    `value`: told by the error instead of the text.
    """
    try:
        return json.loads(document, object_pairs_hook=lambda pairs: _without_repeats(field, pairs))
    except (ValueError, RecursionError) as error:  # ValueError: also a whole number of thousands of digits
        told = document if value is None else value
        raise FieldError(field, told, f"is not JSON: {error}", remedy="correct the syntax") from None


def mapping(
    field: str, value: object, known: frozenset[str] | None = None, *, required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An object with no key but those known (None: any), and with all that are required."""
    if not isinstance(value, dict):
        raise wrong_type(field, value, "an object")
    for key in value:
        if not isinstance(key, str):
            raise wrong_type(field, key, "text as key")
        if known is not None and key not in known:
            remedy = f"remove it; known: {', '.join(sorted(known))}"
            raise FieldError(f"{field}.{key}", value[key], "unknown key", remedy=remedy)
    for key in required:
        if key not in value:
            raise FieldError(f"{field}.{key}", None, "is missing", remedy="add it")
    return value


def each(field: str, value: object, read: Callable[[str, object], T]) -> tuple[T, ...]:
    """A list, each item read under its own path."""
    if not isinstance(value, list):
        raise wrong_type(field, value, "a list")
    return tuple(read(f"{field}[{position}]", item) for position, item in enumerate(value))


def matrix(field: str, value: object) -> tuple[tuple[float, ...], ...]:
    """A list of rows of numbers."""
    return each(field, value, row)


def row(field: str, value: object) -> tuple[float, ...]:
    """A list of numbers."""
    if isinstance(value, list) and {type(item) for item in value} == {float}:
        return tuple(value)  # a million entries of a large cluster; the checks of the problem look at their values
    return each(field, value, number)


def number(field: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(field, value, "a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise FieldError(field, value, "is not a finite number", remedy="give a finite number")
    return found


def whole(field: str, value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(field, value, "a whole number")
    return value


def text(field: str, value: object) -> str:
    """Text."""
    if not isinstance(value, str):
        raise wrong_type(field, value, "text")
    return value


def wrong_type(field: str, value: object, wanted: str) -> FieldError:
    """The complaint about a value of another type."""
    return FieldError(field, value, f"must be {wanted}, not {type(value).__name__}", remedy=f"give {wanted}")


def check_number(field: str, value: float, *, positive: bool = False) -> None:
    """Raises `FieldError` unless the value is finite and not negative, or greater than 0 where that is needed."""
    if not math.isfinite(value):
        raise FieldError(field, value, "is not a finite number", remedy="give a finite number")
    if value < 0 or (positive and value == 0):
        wanted = "greater than 0" if positive else "0 or more"
        raise FieldError(field, value, f"must be {wanted}", remedy=f"give a number that is {wanted}")


def _without_repeats(field: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        repeated = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
        raise FieldError(field, repeated, "a key is given twice in one object", remedy="keep one of them")
    return entry
