"""Stream hops as TCP connections of Storm: ports, ways and counters."""

from __future__ import annotations

import json

import pytest

from leeward.control.snapshot import ports_of
from leeward.core.errors import ProtocolError
from leeward.policies.bimodal.carrying import Bytes, Carried, Carrier, Meter, Port, carriers
from leeward.policies.bimodal.mapping.messages import Route
from leeward.policies.bimodal.model.stream_file import HEADROOM

NODES = {0: "v0", 1: "v1", 2: "v2"}


def test_a_hop_has_every_port_of_its_topology_on_the_receivers_node():
    routes = [Route("a-1/try-2", 0, 2, (0, 1, 2)), Route("b-1", 1, 1, ()), Route("gone-1", 0, 1, ())]
    ports = {"a-1": {"v2": (6700, 6702), "v0": (6700,)}, "b-1": {"v1": (6701,)}}
    assert carriers(routes, ports, NODES) == {
        Port("v2", 6700): Carrier("a-1/try-2", 0, ("v0", "v1", "v2")),
        Port("v2", 6702): Carrier("a-1/try-2", 0, ("v0", "v1", "v2")),
        Port("v1", 6701): Carrier("b-1", 1, ()),
    }


def test_of_two_hops_of_a_task_between_the_same_servers_the_first_says_the_way():
    routes = [Route("a", 2, 1, ()), Route("a", 0, 1, (0, 1))]
    assert carriers(routes, {"a": {"v1": (6700,)}}, NODES)[Port("v1", 6700)] == Carrier("a", 0, ("v0", "v1"))


def test_the_meter_counts_from_look_to_look():
    meter, port = Meter(), Port("v1", 6700)
    of = {port: Carrier("a", 0, ())}
    assert meter.look(of, {port: Bytes(1_000_000, 0)}, 10.0) == [], "nothing to compare with"
    assert meter.look(of, {port: Bytes(2_000_000, 7)}, 12.0) == [Carried("a", 0, HEADROOM * 8.0, 2.0, True)]
    assert meter.look(of, {port: Bytes(500, 0)}, 13.0) == [], "the connection was opened anew"
    assert meter.look(of, {port: Bytes(500, 0)}, 14.0) == [Carried("a", 0, 0.0, 1.0, False)]
    assert meter.look({}, {port: Bytes(900, 0)}, 15.0) == []


def test_ports_are_read_from_the_snapshot_of_the_plugin():
    def executor(node, port):
        return {"component": "c", "tasks": [1, 1], "node": node, "port": port}

    topologies = [
        {"id": "a-1", "executors": [executor("v1", 6701), executor("v1", 6700), executor("v2", 6700)]},
        {"id": "b-1", "executors": [executor(None, None)]},
    ]
    text = json.dumps({"version": 1, "topologies": topologies})
    assert ports_of(text) == {"a-1": {"v1": (6700, 6701), "v2": (6700,)}, "b-1": {}}
    assert ports_of(None) == {}
    with pytest.raises(ProtocolError):
        ports_of("{}")
