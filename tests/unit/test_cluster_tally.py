"""The judge of the cluster tests: it must see each kind of damage."""

from __future__ import annotations

import pytest

from tests.cluster.tally import Tally


def line(n: int, count: int | None = None, last: int | None = None, key: int | None = None) -> str:
    """The right line of number `n` with three keys, or a spoilt one."""
    count = (n + 2) // 3 if count is None else count
    last = (n - 3 if n > 3 else 0) if last is None else last
    return f"{n % 3 if key is None else key} {n} {count} {last} 7 0 {n * 10}"


def judged(lines: list[str]) -> Tally:
    tally = Tally(keys=3)
    for text in lines:
        tally.add(text)
    return tally


def counts(tally: Tally) -> tuple[int, int, int]:
    return tally.lost, tally.repeated, tally.wrong


def test_what_is_right_passes_also_with_keys_interleaved():
    tally = judged([line(n) for n in (1, 4, 2, 3, 7, 5, 6)])
    assert counts(tally) == (0, 0, 0)
    assert tally.has_all(7)
    assert not tally.has_all(8)


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((1, 2, 3, 4, 5, 6, 10), (1, 0, 0)),  # 7 is missing
        ((1, 2, 3, 4, 4, 5, 6), (0, 1, 0)),  # 4 twice
        ((1, 2, 3, 7, 4), (1, 1, 0)),  # the wrong way round
        ((1, 2, 3, 4, 7, 4, 7), (0, 1, 0)),  # gone back, and on from there
    ],
)
def test_losses_repeats_and_disorder_are_counted(numbers: tuple[int, ...], found: tuple[int, int, int]):
    assert counts(judged([line(n) for n in numbers])) == found


@pytest.mark.parametrize("bad", [line(4, count=1), line(4, last=0), line(4, key=2)])
def test_a_line_that_contradicts_itself_is_wrong(bad: str):
    assert judged([line(1), line(2), line(3), bad]).wrong == 1


def test_a_silence_is_measured():
    tally = judged([line(1), line(2), "0 3 1 0 7 0 900"])
    assert tally.longest_ms == 880
