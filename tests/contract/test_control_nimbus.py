"""The Thrift client against Nimbuses made of streamparse's interface: leader, standby, refusals, a restart."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest
from streamparse.thrift import Nimbus, storm_thrift
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TFramedTransportFactory, TServerSocket

from leeward.adapters.nimbus import NimbusClient
from leeward.core.errors import ClusterRefusedError, ConfigError

LEADER, STANDBY = 20110, 20111


class Cluster:
    """Which Nimbus leads, and what was asked of whom."""

    def __init__(self):
        self.leader = LEADER
        self.both = True
        self.calls = []
        self.refuse = []
        self.running = {"app": "app-1-1"}


class FakeNimbus:
    """The handlers of one Nimbus."""

    def __init__(self, cluster, port):
        self.cluster, self.port = cluster, port

    def getClusterInfo(self):
        ports = (LEADER, STANDBY) if self.cluster.both else (self.port,)
        nimbuses = [
            storm_thrift.NimbusSummary(
                host="127.0.0.1", port=p, uptime_secs=1, isLeader=p == self.cluster.leader, version="2"
            )
            for p in ports
        ]
        topologies = [
            storm_thrift.TopologySummary(
                id=id, name=name, num_tasks=3, num_executors=3, num_workers=1, uptime_secs=1, status="ACTIVE"
            )
            for name, id in self.cluster.running.items()
        ]
        return storm_thrift.ClusterSummary(supervisors=[], topologies=topologies, nimbuses=nimbuses)

    def getNimbusConf(self):
        return json.dumps({"storm.zookeeper.root": "/storm"})

    def rebalance(self, name, options):
        self.cluster.calls.append((self.port, name, options.wait_secs, options.num_workers, options.num_executors))
        if self.cluster.refuse:
            raise self.cluster.refuse.pop()
        if self.port != self.cluster.leader:
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, "not a leader")

    def getTopologyConf(self, topology):
        return json.dumps({"storm.id": topology, "leeward.redis.url": "redis://x"})

    def getUserTopology(self, topology):
        def common(inputs, conf):
            return storm_thrift.ComponentCommon(inputs=inputs, streams={}, parallelism_hint=1, json_conf=conf)

        def routed(source, name):
            grouping = storm_thrift.Grouping(
                custom_object=storm_thrift.JavaObject(full_class_name=f"leeward.grouping.{name}", args_list=[])
            )
            return storm_thrift.GlobalStreamId(componentId=source, streamId=name), grouping

        nothing = storm_thrift.ComponentObject(shell=storm_thrift.ShellComponent("x", "y"))
        shuffle = storm_thrift.Grouping(shuffle=storm_thrift.NullStruct())
        work = dict([routed("source", "KeyedGrouping"), routed("source", "MarkerGrouping")])
        plain = {storm_thrift.GlobalStreamId(componentId="source", streamId="default"): shuffle}
        return storm_thrift.StormTopology(
            spouts={"source": storm_thrift.SpoutSpec(nothing, common({}, '{"leeward.kind":"source"}'))},
            bolts={
                "work": storm_thrift.Bolt(nothing, common(work, '{"leeward.kind":"stateful"}')),
                "foreign": storm_thrift.Bolt(nothing, common(plain, None)),
            },
            state_spouts={},
        )


@contextlib.contextmanager
def serving(cluster, port, handlers=FakeNimbus):
    transport = TServerSocket("127.0.0.1", port)
    server = TThreadedServer(
        TProcessor(Nimbus, handlers(cluster, port)), transport,
        iprot_factory=TBinaryProtocolFactory(), itrans_factory=TFramedTransportFactory(), daemon=True,
    )  # fmt: skip

    def serve():
        with contextlib.suppress(OSError):  # the socket is closed under it at the end
            server.serve()

    threading.Thread(target=serve, daemon=True).start()
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.1):
            break
    yield
    server.closed = True
    transport.close()


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
