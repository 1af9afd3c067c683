"""`leeward simulate --workload`: a summary for each policy, the rows on wish, and a run that can be broken off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from tests.sim.toy_workload import Least

CHAINS, LEAST = "tests.sim.toy_workload:Chains", "tests.sim.toy_workload:Least"
#: Two policies of one class on a small cluster.
RUN = ("--workload", CHAINS, "--nodes", 12, "--intervals", 30, "--seed", 4, "--policy", LEAST)
TIGHT = f"{LEAST},room=2,restless=true"


def leeward(*words: object):
    return CliRunner().invoke(_build(), ["simulate", *map(str, words)])


def document_of(*words: object) -> dict:
    done = leeward(*words, "--output", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def timeless(document: dict) -> dict:
    """Without the times that planning took."""
    for one in document["policies"]:
        del one["summary"]["plan_s"]
        for row in one["rows"]:
            del row["plan_s"]
    return document


def test_policies_run_side_by_side_on_the_same_arrivals():
    document = document_of(*RUN, "--policy", TIGHT, "--spread", 0.5)
    assert {key: document["simulation"][key] for key in ("workload", "nodes", "seed", "arrivals", "spread")} == {
        "workload": CHAINS, "nodes": 12, "seed": 4, "arrivals": "random-walk", "spread": 0.5,
    }  # fmt: skip
    wide, tight = document["policies"]
    assert (wide["policy"], tight["policy"]) == (LEAST, TIGHT)
    events = [[(row["arrived"], row["departed"]) for row in one["rows"]] for one in (wide, tight)]
    assert events[0] == events[1] and len(events[0]) == 30
    assert tight["summary"]["refused"] > wide["summary"]["refused"]
    assert tight["summary"]["moves"]["all"] == sum(row["moves"] for row in tight["rows"]) > 0
    assert wide["summary"]["moves"]["all"] == 0


def test_a_run_repeats_but_for_the_time_of_planning():
    assert timeless(document_of(*RUN)) == timeless(document_of(*RUN))
    assert timeless(document_of(*RUN)) != timeless(document_of(*RUN, "--seed", 5))


def test_the_table_has_a_line_for_each_policy_and_on_wish_for_each_interval():
    short = leeward(*RUN, "--policy", TIGHT, "--arrivals", "poisson", "--intervals", 3)
    assert short.exit_code == 0, short.output
    lines = short.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("tests.")] == [LEAST, TIGHT]
    assert "makespan, s" in short.stdout and "+16" not in short.stdout
    long = leeward(*RUN, "--policy", TIGHT, "--arrivals", "poisson", "--intervals", 3, "--intervals-table")
    assert f"intervals of {LEAST}" in long.stdout and f"intervals of {TIGHT}" in long.stdout
    assert long.stdout.count("+16 -0") == 2


@pytest.mark.parametrize(("nodes", "intervals"), [(100, 100), (101, 400)])
def test_intervals_are_those_of_the_paper_if_not_given(nodes, intervals):
    document = document_of("--workload", CHAINS, "--nodes", nodes, "--policy", LEAST)
    assert document["simulation"]["intervals"] == intervals


def test_a_run_goes_on_from_its_rows(tmp_path):
    rows = tmp_path / "rows.jsonl"
    document_of(*RUN, "--policy", TIGHT, "--intervals", 11, "--rows", rows)
    kept = rows.read_bytes()
    went_on = document_of(*RUN, "--policy", TIGHT, "--rows", rows)
    assert rows.read_bytes().startswith(kept)
    assert timeless(went_on) == timeless(document_of(*RUN, "--policy", TIGHT))


def test_an_interrupted_run_says_how_it_goes_on(tmp_path, monkeypatch):
    rows, decide_all, asked = tmp_path / "rows.jsonl", Least.decide_all, []

    def interrupted(self, views, *, now, rng):
        asked.append(now)
        if len(asked) == 9:
            raise KeyboardInterrupt
        return decide_all(self, views, now=now, rng=rng)

    monkeypatch.setattr(Least, "decide_all", interrupted)
    done = leeward(*RUN, "--rows", rows)
    assert done.exit_code == 130 and done.stdout == ""
    assert f"interrupted: {LEAST} was at interval 8 of 30. The rows are in {rows};" in done.stderr
    went_on = document_of(*RUN, "--rows", rows)
    monkeypatch.undo()
    assert timeless(went_on) == timeless(document_of(*RUN))
    asked.clear()
    monkeypatch.setattr(Least, "decide_all", interrupted)
    assert "With --rows FILE the same command goes on" in leeward(*RUN).stderr


def test_control_c_ends_a_run_cleanly(tmp_path):
    root, rows = Path(__file__).parents[2], tmp_path / "rows.jsonl"
    words = ["simulate", *map(str, RUN), "--intervals", "20000", "--rows", str(rows)]
    started = subprocess.Popen(
        [sys.executable, "-m", "leeward", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "scheduler"), str(root)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell's background job ignores it, and so would its child
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not (rows.exists() and rows.read_bytes().count(b"\n") > 3):
            assert started.poll() is None, started.stderr.read()
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        out, said = started.communicate(timeout=60)
    finally:
        started.kill()
    assert started.returncode == 130 and out == ""
    assert said.startswith("interrupted: ") and "Traceback" not in said


WORKLOAD = {"--workload": CHAINS, "--policy": LEAST}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workload", "chain"), "unknown workload 'chain'"),
        (("--workload", "tests.sim.toy_workload:Rings"), "cannot be loaded"),
        (("--nodes", "1"), "nodes = 1: a chain needs two. Give 2 or more."),
        (("--spread", "3"), "spread = 3.0: is more than the mean utilisation of 2. Give a number from 0 to 2."),
        (("--spread", "1", "--arrivals", "poisson"), "--spread is 1, but arrivals are poisson. Leave it out"),
        (("--policy", "even"), "policy 'even' does not decide about several topologies at once. Name one that does"),
        (("--policy", "none"), "policy 'none' does not decide about several topologies at once"),
        (("--policy", "nobody"), "unknown policy 'nobody'"),
        (("--policy", f"{LEAST},romo=1"), f"Did you mean {LEAST}.room?"),
        (("--policy", f"{LEAST},room=few"), f"setting '{LEAST}.room' is 'few'. Give a whole number."),
        (("--policy", f"{LEAST},room"), "'room' has no '='. Write NAME,key=value,key=value."),
        (("--policy", f"{LEAST},room=1,room=2"), "'room=2' is there twice"),
        (("--hours", "3"), "--hours is an option of one topology, not of a workload. Leave it out, or see --help."),
        (("-o", "a=b"), "-o is an option of one topology"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(words, said):
    given = WORKLOAD | dict(zip(words[::2], words[1::2], strict=True))
    done = leeward(*(word for pair in given.items() for word in pair))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ") and said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--topology is missing. Give --topology and --rate, or --workload and --policy."),
        (("--topology", "x.toml"), "--rate is missing."),
        (("--topology", "x.toml", "--rate", "y.csv", "--nodes", "5"), "--nodes is an option of a workload"),
        (("--topology", "x.toml", "--rate", "y.csv", "--policy", "edrp", "--policy", "even"), "Give one; a workload"),
        (("--workload", CHAINS), "--policy is missing. Name at least one: --policy NAME,key=value."),
        (("--workload", CHAINS, "--policy", LEAST, "--policy", LEAST), "is there twice. Give each once."),
    ],
)
def test_the_two_kinds_of_run_are_kept_apart(words, said):
    done = leeward(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ") and said in done.stderr


def test_rows_of_another_run_are_refused(tmp_path):
    rows = tmp_path / "rows.jsonl"
    document_of(*RUN, "--rows", rows)
    done = leeward(*RUN, "--rows", rows, "--seed", 5)
    assert done.exit_code == 2
    assert f"{rows}: seed = 4: its rows are of another run: here it is 5." in done.stderr


def test_help_shows_both_kinds_with_an_example():
    said = leeward("--help").stdout
    for words in ("--workload", "--arrivals", "--spread", "--rows", "Example: leeward simulate --workload"):
        assert words in said
