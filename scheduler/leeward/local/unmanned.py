"""A local cluster's Nimbus alone: nodes without supervisors, and chains of operators that are submitted at once.

Nimbus counts each ephemeral znode below `/storm/supervisors` as a node, and asks no supervisor.  The nodes here are
copies of the znode of the cluster's one supervisor, which is ended first.  So Nimbus assigns as it does on so many
machines, and nobody starts a worker.  Times are those of znodes: ZooKeeper's clock when they were created, which is
this machine's.
"""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from leeward.core.errors import ClusterRefusedError
from leeward.local.nimbus import nimbus_client
from leeward.wire import zookeeper as wire

if TYPE_CHECKING:
    from leeward.local.cluster import LocalCluster

#: Of Storm: of the nodes, of topologies that Nimbus has accepted, and of their assignments.
SUPERVISORS, STORMS, ASSIGNMENTS = "/storm/supervisors", "/storm/storms", "/storm/assignments"
#: Until a supervisor's znode is gone or topologies are assigned or killed; a call of Nimbus; and between two looks, s.
WAIT_S, CALL_S, LOOK_S = 120.0, 120.0, 0.05
#: First port of the slots of each node, on which nothing listens.
FIRST_SLOT = 6700


@contextmanager
def unmanned(cluster: LocalCluster, *, nodes: int, slots: int, operators: int) -> Iterator[Unmanned]:
    """End the supervisors of a running cluster, and register so many nodes in their place until the block is left.

    `operators`: of each chain.  Raises ClusterRefusedError.
    """
    client = wire.client(cluster.zookeeper, patience_s=WAIT_S)
    client.start()
    try:
        found = Unmanned(cluster, client, operators)
        found.register(nodes, slots)
        yield found
    finally:
        client.stop()
        client.close()


class Unmanned:
    """See the module.  `zookeeper`: a started client without secrets, as Nimbus has to read what it writes."""

    def __init__(self, cluster: LocalCluster, zookeeper: Any, operators: int) -> None:
        self._cluster, self._zookeeper = cluster, zookeeper
        summary = cluster.summary()
        self._chain = chain(operators, summary.version if summary else "")
        self._jar = self._upload()

    def register(self, nodes: int, slots: int) -> None:
        """So many nodes, each with so many slots, in place of the cluster's supervisors, which are ended."""
        template = self._zookeeper.get(f"{SUPERVISORS}/{self._zookeeper.get_children(SUPERVISORS)[0]}")[0]
        for node in self._cluster.nodes:
            self._cluster.stop_daemon(node.daemon)
        self._await(lambda: not self._zookeeper.get_children(SUPERVISORS), "the supervisors to be forgotten")
        for number in range(nodes):
            name = f"node-{number}"
            self._zookeeper.create(f"{SUPERVISORS}/{name}", registration(template, name, slots), ephemeral=True)

    def deploy(self, names: Sequence[str]) -> dict[str, Any]:
        """Submit a chain of each name, all at once, and wait until Nimbus has assigned all.

        `seconds`: from the first call to the last assignment.  `applications`: of each, `seconds` from the first call,
        `accepted_s` from Nimbus' acceptance to the assignment, and `status`.  Clients are connected before.
        """
        start = Event()
        with ThreadPoolExecutor(len(names)) as pool, ExitStack() as stack:
            clients = [stack.enter_context(self._client()) for _ in names]
            stack.callback(start.set)  # before the pool waits for its threads, whatever has happened
            calls = [pool.submit(self._submit, start, *one) for one in zip(clients, names, strict=True)]
            began = time.time()
            start.set()
            for call in calls:
                call.result()
        ids = self._ids()
        self._await(lambda: self._assigned(ids[name] for name in names), "the topologies to be assigned")
        times = {name: self._times(ids[name], began) for name in names}
        rows = [{"application": name, "status": "placed", **times[name]} for name in names]
        return {"seconds": max(one["seconds"] for one in times.values()), "applications": rows}

    def kill(self, names: Sequence[str]) -> None:
        """End topologies, and wait until Nimbus has forgotten them."""
        from streamparse.thrift import storm_thrift

        with self._client() as client:
            for name in names:
                client.killTopologyWithOpts(name, storm_thrift.KillOptions(wait_secs=0))
        self._await(
            lambda: not self._zookeeper.get_children(STORMS) and not self._zookeeper.get_children(ASSIGNMENTS),
            "Nimbus to forget the topologies",
        )

    # --- inside

    @contextmanager
    def _client(self) -> Iterator[Any]:
        from thriftpy2.thrift import TException

        layout = self._cluster.layout
        try:
            with nimbus_client(layout.host, layout.nimbus, timeout_ms=int(CALL_S * 1000)) as client:
                yield client
        except TException as error:
            raise ClusterRefusedError(
                f"Nimbus refuses, or does not answer: {error}.", remedy=f"See {self._log}."
            ) from error

    @property
    def _log(self) -> Path:
        return self._cluster.dir / "logs" / "nimbus.log"

    def _upload(self) -> str:
        """The smallest jar, once: Nimbus copies it for each topology, and nobody looks into it."""
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("empty", b"")
        with self._client() as client:
            place: str = client.beginFileUpload()
            client.uploadChunk(place, jar.getvalue())
            client.finishFileUpload(place)
        return place

    def _submit(self, start: Event, client: Any, name: str) -> None:
        conf = json.dumps({"topology.workers": 1})
        start.wait()
        client.submitTopology(name, self._jar, conf, self._chain)

    def _ids(self) -> dict[str, str]:
        """Name of each topology -> Storm's id of it, which adds two numbers."""
        return {id.rsplit("-", 2)[0]: id for id in self._zookeeper.get_children(STORMS)}

    def _assigned(self, ids: Iterator[str]) -> bool:
        return set(ids) <= set(self._zookeeper.get_children(ASSIGNMENTS))

    def _times(self, topology_id: str, began: float) -> dict[str, float]:
        accepted, assigned = (
            self._zookeeper.exists(f"{folder}/{topology_id}").ctime / 1000 for folder in (STORMS, ASSIGNMENTS)
        )
        return {"seconds": assigned - began, "accepted_s": assigned - accepted}

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > until:
                raise ClusterRefusedError(f"waited {WAIT_S:g} s for {what}.", remedy=f"See {self._log}.")
            time.sleep(LOOK_S)


def registration(template: bytes, name: str, slots: int) -> bytes:
    """The znode of a node, from a supervisor's: gzip of Thrift's binary form, as Storm writes it."""
    from streamparse.thrift import storm_thrift
    from thriftpy2.utils import deserialize, serialize

    info = deserialize(storm_thrift.SupervisorInfo(), gzip.decompress(template))
    info.hostname, info.assignment_id = name, name
    info.meta, info.used_ports = list(range(FIRST_SLOT, FIRST_SLOT + slots)), []
    return gzip.compress(serialize(info))


def chain(operators: int, version: str) -> Any:
    """A topology of components of one task each, one behind the other, that no worker runs.

    `version`: of Storm, as its own clients tell it; without it Nimbus looks for heartbeats of older releases.
    """
    from streamparse.thrift import storm_thrift as thrift

    program = thrift.ComponentObject(shell=thrift.ShellComponent(execution_command="true", script=""))

    def common(inputs: dict[Any, Any]) -> Any:
        streams = {"default": thrift.StreamInfo(output_fields=["value"], direct=False)}
        return thrift.ComponentCommon(inputs=inputs, streams=streams, parallelism_hint=1, json_conf="{}")

    bolts = {}
    for number in range(1, operators):
        stream = thrift.GlobalStreamId(componentId=f"op-{number - 1}", streamId="default")
        inputs = {stream: thrift.Grouping(shuffle=thrift.NullStruct())}
        bolts[f"op-{number}"] = thrift.Bolt(bolt_object=program, common=common(inputs))
    spouts = {"op-0": thrift.SpoutSpec(spout_object=program, common=common({}))}
    return thrift.StormTopology(spouts=spouts, bolts=bolts, state_spouts={}, storm_version=version or None)
