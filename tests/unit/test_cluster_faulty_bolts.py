"""The bolts of the faulty topology: the same results in any order of arrival, and a sign of each doubled tuple."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cluster.faulty.src import faulty_numbers as numbers

SRC = Path(__file__).parents[1] / "cluster" / "faulty" / "src"
LIMIT = 3 * numbers.KEYS


@pytest.fixture(scope="module")
def bolts() -> Iterator[ModuleType]:
    """As a worker imports them."""
    sys.path.insert(0, str(SRC))
    yield importlib.import_module("faulty_bolts")
    sys.path.remove(str(SRC))
    for name in ("faulty_bolts", "faulty_numbers"):
        del sys.modules[name]


class Tuple:
    """As much of a tuple as the bolts look at."""

    def __init__(self, source: str, n: int) -> None:
        self.values = [source, numbers.key_of(source, n), n, numbers.value_of(source, n), n]


def results(cls: Any, tuples: list[Tuple]) -> dict[str, str]:
    """What a bolt emits for these tuples, by id; every id must come once."""
    bolt, out = cls.__new__(cls), []
    bolt.state, bolt.emit = {}, out.append
    for tup in tuples:
        bolt.process(tup)
    found = {name: result for name, result, _ in out}
    assert len(found) == len(out)
    return found


def interleaved(rng: random.Random, *, in_order: bool) -> list[Tuple]:
    """The numbers 1..LIMIT of both sources, each source's in order or not."""
    sources = [source for source in numbers.SOURCES for _ in range(LIMIT)]
    rng.shuffle(sources)
    orders = {source: list(range(1, LIMIT + 1)) for source in numbers.SOURCES}
    for order in orders.values() if not in_order else ():
        rng.shuffle(order)
    rest = {source: iter(order) for source, order in orders.items()}
    return [Tuple(source, next(rest[source])) for source in sources]


def wanted(kinds: tuple[str, ...]) -> dict[str, str | None]:
    ids = numbers.expected_ids(dict.fromkeys(numbers.SOURCES, LIMIT))
    return {name: numbers.expected(name) for name in ids if name.split(":")[0] in kinds}


def test_the_count_gives_the_expected_results_in_any_order(bolts: ModuleType):
    found = results(bolts.Count, interleaved(random.Random(1), in_order=False))
    assert found == wanted(numbers.SOURCES)


def test_the_join_gives_the_expected_results_however_the_streams_interleave(bolts: ModuleType):
    found = results(bolts.Join, interleaved(random.Random(2), in_order=True))
    assert found == wanted(("join",))


def test_a_tuple_that_is_processed_twice_leaves_a_wrong_result(bolts: ModuleType):
    counted = results(bolts.Count, [Tuple("left", 1), Tuple("left", 1)])
    assert {name for name, result in counted.items() if numbers.expected(name) != result} == {"again:left:1"}
    key = numbers.key_of("left", 1)
    right = numbers.number_of("right", key, 1)
    joined = results(bolts.Join, [Tuple("left", 1), Tuple("left", 1), Tuple("right", right)])
    assert joined[f"join:{key}:1"] != numbers.expected(f"join:{key}:1")


def test_a_lost_tuple_is_a_missing_result(bolts: ModuleType):
    found = results(bolts.Count, [Tuple("left", 1 + numbers.KEYS)])
    assert found == {}
