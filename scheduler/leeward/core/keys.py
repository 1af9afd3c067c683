"""Keys and key groups: the fixed slices of a component's key space that own tuples and state.

The Java groupings (`leeward.grouping`) compute the same function; `tests/vectors/key_groups.json` holds both to it.
"""

from __future__ import annotations

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
        remedy="Route and keep state by str, int or tuples of these: other types have no text in both Java and Python.",
    )


def key_group(key: object) -> int:
    """Group in [0, GROUPS) of a key: crc32 of its UTF-8 text modulo GROUPS.

    The fields of a tuple are joined with U+001F; a tuple of one field is in the group of that field. Raises
    KeyTypeError for anything but str, int and tuples of these.
    """
    text = _SEPARATOR.join(map(key_text, key)) if type(key) is tuple and key else key_text(key)
    return crc32(text.encode()) % GROUPS
