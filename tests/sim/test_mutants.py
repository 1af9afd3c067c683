"""The torture finds deliberate bugs. Where the list is out of date `python -m tests.sim.mutants` looks for all anew."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sim.mutants import MUTANTS, PACKAGE, SEEDS, Mutant, seed_that_finds

#: Bugs that were found within so many seeds are looked for in every pipeline.
SOON = 60
QUICK = [mutant for mutant in MUTANTS if 0 <= mutant.found < SOON]


def names(mutants: list[Mutant]) -> str:
    return ", ".join(mutant.name for mutant in mutants)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_line_is_there_once_and_the_bug_changes_it(mutant):
    lines = (PACKAGE / mutant.file).read_text().split("\n")
    assert lines[mutant.place(lines)].strip() == mutant.old != mutant.new
    assert 0 <= mutant.found < SEEDS


def test_there_are_twenty_over_protocol_coordinator_and_runtime():
    assert len(MUTANTS) >= 20 and len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    rooms = {mutant.file.split("/")[0] for mutant in MUTANTS}
    assert rooms == {"core", "control", "runtime"}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_bugs_that_show_soon_are_found_soon():
    """Changes of the simulator move the seeds that find a bug, so there are ten times as many."""
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda mutant: seed_that_finds(mutant, 10 * SOON), QUICK)
    missed = [mutant for mutant, seed in zip(QUICK, found, strict=True) if seed is None]
    assert not missed, f"not found within {10 * SOON} seeds: {names(missed)}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m not in QUICK], ids=lambda mutant: mutant.name)
def test_every_bug_is_found(mutant):
    assert seed_that_finds(mutant, SEEDS, jobs=os.cpu_count() or 1) is not None
