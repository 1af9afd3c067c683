"""The torture command: what it prints, how it ends, and that a seed can be replayed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from leeward.sim.pair import Pair
from tests.sim.mutants import MUTANTS, PACKAGE

TOKEN = next(mutant for mutant in MUTANTS if mutant.name == "token of base 0")


def torture(*arguments: str, package=PACKAGE.parent) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "leeward.sim.torture", *arguments],
        env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


def test_seeds_without_a_failure_end_with_0():
    run = torture("--seeds", "6", "--first", "3", "--jobs", "2", "--json")
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout)
    assert (outcome["first"], outcome["ran"], outcome["failures"]) == (3, 6, [])


@pytest.mark.long
def test_a_failing_seed_prints_itself_its_story_and_a_replay_that_fails_alike(tmp_path):
    TOKEN.apply(tmp_path)
    run = torture("--seeds", "200", "--jobs", "1", "--failures", "1", package=tmp_path)
    assert run.returncode == 1, run.stderr
    first, *story, command, total = run.stdout.strip().split("\n")
    assert first.startswith("seed ") and story and "1 failed" in total
    assert command.startswith("Replay it: python -m leeward.sim.torture --replay ")
    again = torture("--replay", command.split()[-1], package=tmp_path)
    assert again.returncode == 1
    assert again.stdout.split("\n")[0] == first


@pytest.mark.long
def test_ctrl_c_ends_it_with_what_came_until_then():
    process = subprocess.Popen(
        [sys.executable, "-m", "leeward.sim.torture", "--seeds", "100000", "--jobs", "2"],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)}, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    try:
        time.sleep(8)  # its imports take a second or two
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "(stopped): 0 failed" in text


@pytest.mark.parametrize("seed", [1, 2])
def test_one_seed_is_always_the_same_run(seed):
    assert list(Pair(seed).run().story) == list(Pair(seed).run().story)
