"""Ports and names of a local cluster follow from its spec alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import ConfigError
from leeward.local.layout import ClusterSpec, layout_of


def test_the_default_nimbus_is_the_one_that_config_json_names():
    config = Path(__file__).resolve().parents[2] / "config.json"
    layout = layout_of(ClusterSpec(dir=Path("out/cluster")))
    assert f'"nimbus": "127.0.0.1:{layout.nimbus}"' in config.read_text()


def test_nodes_have_names_and_slots_of_their_own():
    layout = layout_of(ClusterSpec(dir=Path("x"), base_port=16000, supervisors=3, slots=2))
    assert [node.name for node in layout.nodes] == ["127.0.0.11", "127.0.0.12", "127.0.0.13"]
    assert [node.ports for node in layout.nodes] == [(16100, 16101), (16102, 16103), (16104, 16105)]
    assert layout.node_of_port(16103) == "127.0.0.12"
    assert layout.node_of_port(16106) is None


@given(supervisors=st.integers(1, 60), slots=st.integers(1, 100), base=st.integers(1024, 59000))
def test_no_port_serves_two_purposes(supervisors: int, slots: int, base: int):
    layout = layout_of(ClusterSpec(dir=Path("x"), base_port=base, supervisors=supervisors, slots=slots))
    assert len(layout.purposes()) == 3 + supervisors + supervisors * slots
    assert all(base < port < 65536 for port in layout.purposes())


@pytest.mark.parametrize(("field", "value"), [("supervisors", 0), ("supervisors", 61), ("slots", 0), ("base_port", 80)])
def test_a_number_that_makes_no_cluster_is_refused_by_name(field: str, value: int):
    with pytest.raises(ConfigError, match=rf"{field}: {value} is out of range"):
        ClusterSpec(dir=Path("x"), **{field: value})


def test_an_unknown_daemon_is_refused_with_the_known_ones():
    layout = layout_of(ClusterSpec(dir=Path("x"), supervisors=1))
    with pytest.raises(ConfigError, match=r"supervisor-2.*zookeeper, redis, nimbus, supervisor-1"):
        layout.port_of("supervisor-2")
