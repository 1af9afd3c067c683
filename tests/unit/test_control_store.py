"""Decisions of people that ZooKeeper keeps and this release cannot read: nobody may take them for none."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from leeward.adapters.control_store import ZooControlStore
from leeward.core.control import Paths
from leeward.core.standing import STANDING_VERSION, Standing

NEWER = json.dumps(json.loads(Standing(proposals=4).to_json()) | {"version": STANDING_VERSION + 1})


def read(text):
    found = text.encode(), SimpleNamespace(version=0)
    client = SimpleNamespace(retry=lambda get, path: get(path), get=lambda _: found)
    return ZooControlStore(client, Paths("/leeward", "app-1-1"), "app").read_standing()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NEWER, f"standing field 'version' is {STANDING_VERSION + 1}, this program reads {STANDING_VERSION}."),
        ('{"frozen":tru', "not a standing: JSONDecodeError("),
        ('{"version":2,"proposal":null,"thawed":false}', "not a standing: TypeError("),
    ],
)
def test_decisions_that_cannot_be_read_are_a_freeze(text, why):
    standing = read(text)
    assert standing.frozen and standing.unreadable
    assert standing.why.startswith(f"its decisions cannot be read: {why}")
    assert standing.why.endswith("Start the release that wrote them, or undo this freeze, which writes them anew")


def test_others_are_as_they_were_written_and_none_are_none():
    standing = Standing(frozen=True, why="a release", since=3.0)
    assert read(standing.to_json()) == standing and not standing.unreadable
    assert read("") is None
