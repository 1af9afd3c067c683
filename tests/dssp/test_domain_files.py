"""A domain's file: nodes by command, by topology or emulated, and its complaints."""

from __future__ import annotations

import json

import pytest

from leeward.core.fields import FieldError
from leeward.policies.dssp.model.organisation_files import Streams, read_domain

TOPOLOGY = {"redis": "redis://127.0.0.1:6379/0", "stream": "sensing"}
NODE = {"areas": [[0, 0, 1, 1]], "execution_s": 0.1}
DOMAIN = {
    "name": "north", "listen": {"port": 0}, "registry": "http://127.0.0.1:8100", "callers": "c", "tokens": "t",
    "capabilities": ["air"],
}  # fmt: skip


def read(tmp_path, *nodes, **more):
    (file := tmp_path / "north.json").write_text(json.dumps(DOMAIN | {"nodes": nodes} | more))
    return read_domain(file)


def test_a_node_is_a_command_or_a_topology_or_emulated(tmp_path):
    nodes = [NODE | {"command": ["date", "+%s"]}, NODE | {"topology": TOPOLOGY, "pods": 30}, NODE]
    found = read(tmp_path, *nodes, emulated={"shape": "uniform"}).nodes
    assert [one.topology for one in found] == [None, Streams(**TOPOLOGY), None]
    assert [one.command for one in found] == [("date", "+%s"), (), ()] and found[1].pods == 30
    assert read(tmp_path, NODE | {"topology": TOPOLOGY}).emulated is None


@pytest.mark.parametrize(
    "node, field, words",
    [
        ({}, "nodes[0].command", "is missing. Give it a command that prints a reading, or a topology, or give"),
        ({"topology": TOPOLOGY, "command": ["date"]}, "nodes[0].topology", "stands beside a command. Leave one"),
        ({"topology": "sensing"}, "nodes[0].topology", "must be an object"),
        ({"topology": {"redis": TOPOLOGY["redis"]}}, "nodes[0].topology.stream", "is missing"),
        ({"topology": TOPOLOGY | {"maxlen": 1}}, "nodes[0].topology.maxlen", "unknown key"),
        ({"topology": TOPOLOGY | {"stream": ""}}, "nodes[0].topology.stream", "is empty. Give the name"),
        ({"topology": TOPOLOGY | {"stream": 7}}, "nodes[0].topology.stream", "must be text"),
        ({"topology": TOPOLOGY | {"redis": "127.0.0.1:6379"}}, "nodes[0].topology.redis", "is no URL of a Redis. Give"),
        ({"topology": TOPOLOGY | {"redis": "redis://:secret@h:1/0"}}, "nodes[0].topology.redis", "holds a password"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(tmp_path, node, field, words):
    with pytest.raises(FieldError) as caught:
        read(tmp_path, NODE | node)
    assert caught.value.field == field and words in str(caught.value) and "secret@" not in str(caught.value)
