"""Commands as processes, on a ZooKeeper and a Redis, with a Nimbus and tasks made here."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import redis
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from leeward.core.control import (
    ControlRecord,
    Paths,
    Phase,
    Report,
    ahead_barrier,
    cut_barrier,
    handover_barrier,
    ready_barrier,
)
from leeward.core.plan import Placement
from leeward.sim.memory import snapshot_text
from tests.helpers.control_twins import NODES, SLOTS, TASKS
from tests.helpers.nimbus_twin import FakeNimbus
from tests.helpers.servers import free_port

NIMBUS = free_port()
STARTED: list[subprocess.Popen] = []
PATHS = Paths("/leeward", "app-1-1")


class Bots:
    """All tasks and the plugin in one thread: they do what the record says, and place what is wanted."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.client = KazooClient(hosts)
        self.client.start()
        self.slots = dict(SLOTS)
        self.pausing = True  # else no report of a pause: its barrier is missed
        self.done: set[str] = set()
        self.phases: list[tuple[int, str]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self.publish(None)
        self._thread.start()

    def publish(self, placement: Placement | None) -> None:
        text = snapshot_text(
            nodes=NODES, topology_id="app-1-1", name="app", tasks=TASKS, slots=self.slots,
            managed=placement is not None, epoch=placement.epoch if placement else None,
        ).encode()  # fmt: skip
        self.client.ensure_path("/leeward/snapshot")
        if self.client.get("/leeward/snapshot")[0] != text:
            self.client.set("/leeward/snapshot", text)

    def fill(self, *, others: str) -> None:
        """Another topology has every slot, and this one none."""
        document = json.loads(snapshot_text(nodes=NODES, topology_id="app-1-1", name="app", tasks=TASKS, slots={}))
        slots = [(node, port) for node, ports in NODES.items() for port in ports]
        executors = [
            {"component": "c", "tasks": [task, task], "node": node, "port": port}
            for task, (node, port) in enumerate(slots, 1)
        ]
        other = document["topologies"][0] | {"id": f"{others}-2-17", "name": others, "executors": executors}
        document["topologies"].append(other)
        self.client.set("/leeward/snapshot", json.dumps(document).encode())

    def record(self) -> ControlRecord | None:
        if not self.client.exists(PATHS.control):
            return None
        text = self.client.get(PATHS.control)[0]
        return ControlRecord.from_json(text) if text else None

    def _live(self) -> None:
        while not self._stop.wait(0.02):
            with contextlib.suppress(NoNodeError):  # a service has deleted what the killed topology left
                self._act()

    def _act(self) -> None:
        if self.client.exists("/leeward/placement/app"):
            placement = Placement.from_json(self.client.get("/leeward/placement/app")[0])
            self.slots = dict(placement.slots)
            self.publish(placement)
        record = self.record()
        if record is None:
            return
        if not self.phases or self.phases[-1] != (record.epoch, str(record.phase)):
            self.phases.append((record.epoch, str(record.phase)))
        if record.phase is Phase.PAUSE:
            if self.pausing:
                self._report(cut_barrier(record.cut))
        elif record.phase is Phase.RESTORE:
            self._report(ready_barrier(record.epoch))
        else:
            if record.ahead:
                self._report(ahead_barrier(record.ahead))
            if record.handover:
                self._report(handover_barrier(record.handover))
            if record.restarts:
                self._report(ready_barrier(record.epoch))
            if record.checkpoint:
                self._report(cut_barrier(record.checkpoint))

    def _report(self, barrier: str) -> None:
        if barrier in self.done:
            return
        self.done.add(barrier)
        for task, component in TASKS.items():
            report = Report(task=task, component=component, bytes=100)
            self.client.create(f"{PATHS.barrier(barrier)}/{task}", report.to_json().encode(), makepath=True)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.client.stop()
        self.client.close()

    def close(self) -> None:
        self.client.delete("/leeward", recursive=True)
        self.stop()


class App(FakeNimbus):
    """One Nimbus with the topology of the twins."""

    redis_url, zookeeper_port = "", 0

    def getUserTopology(self, topology):
        found = super().getUserTopology(topology)
        sink = found.bolts.pop("foreign")
        sink.common.json_conf = '{"leeward.kind":"stateful"}'
        found.bolts["sink"] = sink
        return found

    def getTopologyConf(self, topology):
        return json.dumps({
            "storm.id": topology, "leeward.redis.url": self.redis_url,
            "storm.zookeeper.servers": ["127.0.0.1"], "storm.zookeeper.port": self.zookeeper_port,
        })  # fmt: skip


def end_started():
    """The commands that a test that failed has left."""
    for process in STARTED:
        process.kill()
        process.communicate()
    STARTED.clear()


def beat():
    """Every task has left a beat."""
    with redis.Redis.from_url(App.redis_url) as client:
        client.hset("leeward:app-1-1:alive", mapping=dict.fromkeys(map(str, TASKS), "1"))


def leeward(*arguments, nimbus=True, **options):
    command = [sys.executable, "-c", "from leeward.cli import app; app()", *map(str, arguments)]
    if nimbus and (arguments[0] != "drain" or "--zookeeper" not in arguments):
        command += ["--nimbus", f"127.0.0.1:{NIMBUS}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=options.pop("cwd", None), **options
    )
    STARTED.append(process)
    return process


def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out.strip(), err.strip()


def events(file: Path):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def actions(file):
    return [event["action"] for event in events(file)]
