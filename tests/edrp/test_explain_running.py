"""A topology that runs is explained as an instance is, by its measurements and with the settings that are given."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from leeward.cli import _build, _once
from tests.helpers.control_views import view


@pytest.fixture
def running(monkeypatch):
    """Commands find this view in place of a cluster's."""

    def put(**changes: object) -> None:
        monkeypatch.setattr(_once, "look_once", lambda _name, _at, _settings, _timeout, made: made(view(**changes)))

    return put


def explain(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(_build(), ["explain", "app", "--output", "json", "--time-limit", "30", *words])
    return done.exit_code, done.stdout


def test_its_rates_and_places_are_those_of_the_view(running):
    running(rate=120.0, work=(2, 3))
    code, told = explain()
    document = json.loads(told)
    assert code == 0 and document["name"] == "app" and document["status"] == "optimal"
    assert {stream["from"]: stream["rate"] for stream in document["streams"]}["source"] >= 120.0
    assert set(document["deployment"]) == {"source", "work", "sink"}


def test_the_settings_that_are_given_count(running):
    running(rate=120.0, work=(2, 3))
    delayed = json.loads(explain("-o", "edrp.link_delay_s=0.05")[1])
    at_once = json.loads(explain()[1])
    used = [node["id"] for node in at_once["nodes"] if node["used"]]
    assert used == ["n1", "n2"] and (delayed["R"] >= at_once["R"] + 0.05 or delayed["deployment"]["work"] == {"n1": 2})
    assert explain("-o", "edrp.w_r=2")[0] == 2


def test_without_tuples_there_is_nothing_to_price(running):
    running(stream_rate={("source", "work"): 0.0, ("work", "sink"): 0.0})
    assert explain()[0] == 2
