"""What travels through the topology `pipe`: a value of every type, and some that cannot."""

JSON = [
    None, True, False, 0, -1, 2**31, -(2**63), 2**63 - 1, 10**30, 0.1, 1.0, -73.98771000000001, 1e300,
    "", 'Zürich 日本 😀\n"', [], {}, [1, [2.5, [None, "x"]]], {"a": [1, {"b": 0.30000000000000004}]},
]  # fmt: skip
ALL = [
    *JSON, b"", b"\x00\xff\nend\n", float("nan"), float("inf"), float("-inf"), -0.0, {1: "one", None: b"2"},
    "x" * 200_000,
]  # fmt: skip
UNFIT = [{1, 2}, {(1, 2): 3}, object]


def told(value):
    """A text that is the same for the same value of the same type."""
    if isinstance(value, list):
        return "[" + ",".join(map(told, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{told(key)}:{told(item)}" for key, item in value.items())) + "}"
    return f"{type(value).__name__} {value!r}"[:300]
