"""`leeward simulate`: a day's table is the one that is checked in; what is wrong is named, with a remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build

ROOT = Path(__file__).parents[2]
QUERY1 = str(ROOT / "storm_conf/worlds/query1.toml")
WEEK = str(ROOT / "scheduler/leeward/replay/data/rate_by_hour_of_week.csv")
GOLDEN = Path(__file__).with_name("simulate_day.out")


def leeward(*words: object):
    return CliRunner().invoke(_build(), ["simulate", *map(str, words)])


def day(*words: object):
    return leeward("--topology", QUERY1, "--rate", WEEK, "--peak", 220, "--hours", 24, "--period", 300, *words)


def test_a_day_of_query_1_is_as_it_was():
    """To write it anew: the same command, with its standard output in tests/sim/simulate_day.out."""
    done = day()
    assert done.exit_code == 0, done.output
    assert done.stdout == GOLDEN.read_text()
    assert "287 plans, solving" in done.stderr


def test_json_says_what_was_simulated(tmp_path):
    events, picture = tmp_path / "out/events.jsonl", tmp_path / "out/picture.svg"
    done = leeward(
        "--topology", QUERY1, "--rate", WEEK, "--scale", 10, "--hours", 1, "--policy", "even", "--output", "json",
        "-o", "even.headroom=0.2", "--seed", 3, "--events", events, "--picture", picture,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["simulation"]["policy"] == "even"
    assert document["simulation"]["options"] == ["even.headroom=0.2"]
    assert document["plans"]["made"] == 59
    assert document["tuples"]["lost"] == 0
    assert events.read_text().startswith('{"t": ')
    assert picture.read_text().startswith("<?xml")


def test_without_a_policy_nothing_changes():
    done = leeward("--topology", QUERY1, "--rate", WEEK, "--hours", 1, "--policy", "none", "--output", "json")
    document = json.loads(done.stdout)
    assert (document["plans"]["made"], document["reconfigurations"]["restarts"]) == (0, 0)
    assert document["cost"] == {"dollars": 8.0, "per_h": 8.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "edpr"), "unknown policy 'edpr'"),
        (("-o", "edrp.w_q=1"), "unknown setting 'edrp.w_q'"),
        (("-o", "perod_s=1"), "Did you mean period_s"),
        (("-o", "period"), "has no '='"),
        (("--topology", "none.toml"), "topology file 'none.toml' does not exist"),
        (("--rate", "none.csv"), "rate file 'none.csv' does not exist"),
        (("--peak", "200", "--scale", "2"), "--scale is 2 and --peak is 200. Give one of them."),
        (("--picture", "week.png"), "Name a file that ends in .svg"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(words, said):
    given = {"--topology": QUERY1, "--rate": WEEK, "--hours": "1"}
    given |= dict(zip(words[::2], words[1::2], strict=True))
    done = leeward(*(word for pair in given.items() for word in pair))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ") and said in done.stderr
    assert done.stdout == ""


def test_help_names_every_option():
    said = leeward("--help").stdout
    for option in ("--policy", "--topology", "--rate", "--hours", "--seed", "--period", "--output", "--events"):
        assert option in said


def test_a_joint_policy_is_asked_about_the_one_topology():
    """Its nodes have no class, which edge and cloud needs: each plan is refused with that reason, none with a crash."""
    done = leeward("--topology", QUERY1, "--rate", WEEK, "--peak", 100, "--hours", 0.1, "--policy", "edge-cloud")
    assert done.exit_code == 0, done.output
    assert "meta.class" in done.stdout
