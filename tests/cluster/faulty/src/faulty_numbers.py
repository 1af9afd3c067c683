"""What the faulty topology computes, as plain functions of a number. Pure; the bolts and the judge share it.

Each of two sources sends n = 1, 2, 3, ...; the key of n runs through all keys in an order of the source's own, so that
every key occurs once in each *turn* of KEYS numbers. The results, each under an id of its own:

    left:<n>, right:<n>     how often this source has sent this key so far, and the sum of the values
    join:<key>:<turn>       the left and the right tuple of this key and turn, and the product of their values

No result depends on how the two streams interleave.
"""

from __future__ import annotations

KEYS = 3000
SOURCES = ("left", "right")
#: Coprime to KEYS. Two orders, so that a tuple waits up to a whole turn in the join's state for its counterpart.
STRIDES = {"left": 1009, "right": 2003}
OFFSETS = {"left": 11, "right": 503}


def key_of(source: str, n: int) -> int:
    """The key of a source's n-th tuple."""
    return n * STRIDES[source] % KEYS


def turn_of(n: int) -> int:
    """How often the key of n has occurred at its source, n included."""
    return (n - 1) // KEYS + 1


def number_of(source: str, key: int, turn: int) -> int:
    """The inverse of the two functions above."""
    first = key * pow(STRIDES[source], -1, KEYS) % KEYS or KEYS
    return first + (turn - 1) * KEYS


def value_of(source: str, n: int) -> int:
    """The value of a source's n-th tuple."""
    return (n * 37 + turn_of(n) + OFFSETS[source]) % 1000


def count_id(source: str, n: int) -> str:
    """The id of the counted result of one tuple."""
    return f"{source}:{n}"


def join_id(key: int, turn: int) -> str:
    """The id of a joined pair."""
    return f"join:{key}:{turn}"


def count_result(count: int, total: int) -> str:
    """As the count writes it."""
    return f"{count} {total}"


def join_result(left_n: int, right_n: int, product: int, joined: int, stale: int) -> str:
    """As the join writes it. `joined`: pairs of this key so far; `stale`: tuples of past turns that are left over."""
    return f"{left_n} {right_n} {product} {joined} {stale}"


def expected(name: str) -> str | None:
    """The right result under this id; None if no computation of the topology has this id."""
    kind, *numbers = name.split(":")
    try:
        values = [int(text) for text in numbers]
    except ValueError:
        return None
    if kind in SOURCES and len(values) == 1 and values[0] > 0:
        return _counted(kind, values[0])
    if kind == "join" and len(values) == 2 and 0 <= values[0] < KEYS and values[1] > 0:
        return _joined(*values)
    return None


def expected_ids(limits: dict[str, int]) -> set[str]:
    """The ids of all results once each source has sent 1..limit."""
    ids = {count_id(source, n) for source, limit in limits.items() for n in range(1, limit + 1)}
    for n in range(1, limits["left"] + 1):
        key, turn = key_of("left", n), turn_of(n)
        if number_of("right", key, turn) <= limits["right"]:
            ids.add(join_id(key, turn))
    return ids


def _counted(source: str, n: int) -> str:
    turn = turn_of(n)
    return count_result(turn, sum(value_of(source, n - past * KEYS) for past in range(turn)))


def _joined(key: int, turn: int) -> str:
    left, right = (number_of(source, key, turn) for source in SOURCES)
    return join_result(left, right, value_of("left", left) * value_of("right", right), turn, 0)
