"""The Thrift client against Nimbuses made of streamparse's interface: leader, standby, refusals, a restart."""

from __future__ import annotations

import threading

import pytest
from streamparse.thrift import storm_thrift

from leeward.adapters.nimbus import NimbusClient
from leeward.core.errors import ClusterRefusedError, ConfigError
from tests.helpers.nimbus_twin import LEADER, STANDBY, Cluster, serving


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def both(cluster):
    with serving(cluster, LEADER), serving(cluster, STANDBY):
        yield cluster


def client(*ports, tries=4):
    return NimbusClient([f"127.0.0.1:{port}" for port in ports], tries=tries, pause_s=0.01, timeout_s=2.0)


def test_finds_the_leader_through_a_standby(both):
    client(STANDBY).rebalance("app", workers=2, executors={"work": 2})
    assert both.calls == [(LEADER, "app", 0, 2, {"work": 2})]


def test_skips_a_seed_that_is_silent(both):
    client(20119, LEADER).rebalance("app", workers=1, executors={})
    assert [call[0] for call in both.calls] == [LEADER]


def test_follows_a_change_of_leader(both):
    nimbus = client(LEADER)
    nimbus.rebalance("app", workers=1, executors={})
    both.leader = STANDBY
    nimbus.rebalance("app", workers=1, executors={})
    assert [call[0] for call in both.calls][-1] == STANDBY


def test_nobody_leads(both):
    both.leader = 0
    with pytest.raises(ClusterRefusedError, match=r"has not served in 4 tries.*knows no leader.*Check that a Nimbus"):
        client(LEADER, STANDBY).rebalance("app", workers=1, executors={})
    assert both.calls == []


def test_a_refusal_for_good_is_not_tried_again(both):
    both.refuse = [storm_thrift.NotAliveException(msg="app is not alive")]
    with pytest.raises(ClusterRefusedError, match="app is not alive"):
        client(LEADER).rebalance("app", workers=1, executors={})
    assert len(both.calls) == 1


def test_nobody_answers():
    with pytest.raises(ClusterRefusedError, match=r"127\.0\.0\.1:20119"):
        client(20119).topologies()


def test_its_own_configuration(both):
    assert client(LEADER).conf() == {"storm.zookeeper.root": "/storm"}


def test_several_threads_ask_one_after_the_other(both):
    nimbus, answers = client(LEADER), []
    threads = [threading.Thread(target=lambda: answers.append(nimbus.topologies())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [{"app": "app-1-1"}] * 8


def test_structure(both):
    structure = client(LEADER).structure("app")
    assert structure.id == "app-1-1" and structure.conf["leeward.redis.url"] == "redis://x"
    assert [(c.id, c.kind, c.inputs) for c in structure.components] == [
        ("foreign", "", ()), ("source", "source", ()), ("work", "stateful", ("source",)),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"'other' does not run; running: \['app'\]"):
        client(LEADER).structure("other")


@pytest.mark.parametrize("seed", ["6627", "nimbus:", "nimbus:x", ":6627"])
def test_bad_address(seed):
    with pytest.raises(ConfigError, match="is not host:port"):
        NimbusClient([seed])


def test_closing_beside_a_call_that_closes_the_broken_connection_is_no_error(both):
    """At the end of a service its thread closes the client while a plan's thread finds the connection broken."""
    nimbus = client(LEADER)
    nimbus.topologies()

    class HalfClosed:
        def close(self):
            raise AttributeError("'NoneType' object has no attribute 'close'")

    nimbus._client = HalfClosed()
    nimbus.close()
    assert nimbus.topologies() == {"app": "app-1-1"}
