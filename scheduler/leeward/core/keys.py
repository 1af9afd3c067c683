"""Keys and key groups: the fixed slices of a component's key space that own tuples and state.

The Java groupings (`leeward.grouping`) compute the same function; `tests/vectors/key_groups.json` holds both to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from leeward.core.errors import KeyTypeError

#: Key groups of every component; the unit of state that moves.
GROUPS = 128

_SEPARATOR = "\x1f"


def key_text(key: object) -> str:
    """The text of one key field. Raises KeyTypeError for anything but str and int (bool is not an int here)."""
    if type(key) is str:
        return key
    if type(key) is int:
        return str(key)
    raise KeyTypeError(
        f"key {key!r} is of type {type(key).__name__}.",
        remedy="Route and keep state by str or int keys only: other types have no text that Java and Python share.",
    )


def key_group(key: object) -> int:
    """Group in [0, GROUPS) of a key: crc32 of its UTF-8 text modulo GROUPS."""
    text = key if type(key) is str else key_text(key)  # asked for with every tuple and every look into a state
    return crc32(text.encode()) % GROUPS


def fields_group(fields: Iterable[object]) -> int:
    """Group of a key of several fields, joined with U+001F."""
    return crc32(_SEPARATOR.join(map(key_text, fields)).encode()) % GROUPS
