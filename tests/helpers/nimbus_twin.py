"""Nimbuses made of streamparse's interface, served over Thrift."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

from streamparse.thrift import Nimbus, storm_thrift
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TFramedTransportFactory, TServerSocket

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
