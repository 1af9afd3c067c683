"""Nodes without a supervisor, and chains, as Nimbus reads them."""

from __future__ import annotations

import gzip

from streamparse.thrift import storm_thrift
from thriftpy2.utils import deserialize, serialize

from leeward.local.unmanned import FIRST_SLOT, chain, registration


def test_a_node_is_registered_as_the_supervisor_is_but_for_name_and_slots():
    info = storm_thrift.SupervisorInfo(
        time_secs=7, hostname="127.0.0.11", assignment_id="a", used_ports=[7300], meta=[7300],
        scheduler_meta={"zone": "north"}, uptime_secs=3, version="2.8.9", resources_map={"cpu.pcore.percent": 400.0},
    )  # fmt: skip
    found = deserialize(
        storm_thrift.SupervisorInfo(), gzip.decompress(registration(gzip.compress(serialize(info)), "node-5", 3))
    )
    assert (found.hostname, found.assignment_id, found.used_ports) == ("node-5", "node-5", [])
    assert found.meta == [FIRST_SLOT, FIRST_SLOT + 1, FIRST_SLOT + 2]
    assert (found.time_secs, found.version, found.resources_map) == (7, "2.8.9", {"cpu.pcore.percent": 400.0})


def test_each_operator_of_a_chain_reads_the_one_before_it():
    found = deserialize(storm_thrift.StormTopology(), serialize(chain(3, "2.8.9")))
    assert sorted(found.spouts) == ["op-0"] and sorted(found.bolts) == ["op-1", "op-2"]
    read = {name: [stream.componentId for stream in bolt.common.inputs] for name, bolt in found.bolts.items()}
    assert read == {"op-1": ["op-0"], "op-2": ["op-1"]} and found.storm_version == "2.8.9"
