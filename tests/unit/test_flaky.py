"""What scripts/flaky.py makes of tests that failed once."""

from __future__ import annotations

import pytest

from tests.unit.test_protocol_page import script


@pytest.mark.parametrize(
    ("again", "before", "code", "words"),
    [
        (set(), set(), 0, ["FLAKY a", "FLAKY b", "Write a line"]),
        ({"a"}, set(), 1, ["FLAKY b"]),
        (set(), {"b"}, 1, ["FLAKY a", "FLAKY b", "FLAKY BEFORE b"]),
        ({"a", "b"}, {"b"}, 1, []),
    ],
)
def test_a_test_that_passes_alone_is_flaky_and_fails_the_run_the_second_time(again, before, code, words):
    got, lines = script("flaky").judge(["a", "b"], again, before)
    assert got == code
    assert all(any(line.startswith(word) for line in lines) for word in words) and bool(lines) == bool(words)
