"""The Nimbus that leads is killed in the middle of a restart, and another one leads: the move ends, or is undone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from leeward.adapters.nimbus import NimbusClient
from leeward.core.control import Phase
from leeward.core.errors import ClusterRefusedError
from leeward.local import ClusterSpec, LocalCluster, loopback, render
from leeward.local.cluster import MARK
from tests.cluster.builders import moved, scaled
from tests.cluster.harness import At, Running, Stage, await_
from tests.helpers.servers import port_block

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

#: Of the second Nimbus; the first has 127.0.0.1. Both listen on the same port, as `nimbus.seeds` needs.
OTHER = "127.0.0.2"
SETTINGS = {
    "nimbus.seeds": ["127.0.0.1", OTHER],
    "nimbus.code.sync.freq.secs": 2,  # the other one has the code of the topology soon; it may not lead without
    "topology.min.replication.count": 2,
    "topology.max.replication.wait.time.sec": 60,
    "storm.zookeeper.session.timeout": 8000,  # the dead leader's latch is free after it
}


class OtherNimbus:
    """A second Nimbus of a local cluster, with files and an address of its own."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        install, spec = cluster._installed(), cluster.spec
        options = {"storm.local.dir": spec.dir / "nimbus-2", "storm.local.hostname": OTHER}
        command = render.java("nimbus-2", "nimbus", spec, install, options, [render.NIMBUS_MAIN])
        environment = render.environment_of(os.environ, spec, install, MARK)
        environment |= loopback.environment(loopback.library(install.kept), OTHER, environment)
        with (spec.dir / "logs" / "nimbus-2.out").open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=spec.dir, env=environment,
                process_group=0,
            )  # fmt: skip
        self.address = f"{OTHER}:{cluster.layout.nimbus}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def stage_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("two-nimbuses")
    spec = ClusterSpec(dir=folder / "cluster", base_port=port_block(), supervisors=2, slots=2, settings=SETTINGS)
    with LocalCluster(spec) as cluster:
        stage = Stage(cluster, folder)
        stage.addresses = replace(stage.addresses, nimbus=[cluster.nimbus, f"{OTHER}:{cluster.layout.nimbus}"])
        stage.nimbus.close()
        stage.nimbus = NimbusClient(stage.addresses.nimbus)
        try:
            yield stage
        finally:
            stage.close()


@pytest.fixture
def other(stage_: Stage) -> Iterator[OtherNimbus]:
    """It ends before the first one is started again: to a cluster a port is taken at whatever address."""
    nimbus = OtherNimbus(stage_.cluster)
    try:
        await_(lambda: nimbuses(nimbus.address), "the second Nimbus to answer")
        yield nimbus
    finally:
        nimbus.end()


def nimbuses(address: str) -> dict[str, bool]:
    """Host of each Nimbus that this one knows -> it leads; none if it does not answer."""
    client = NimbusClient([address], tries=1, timeout_s=2.0)
    try:
        info = client._call(lambda asked: asked.getClusterInfo())
    except ClusterRefusedError:
        return {}
    finally:
        client.close()
    return {nimbus.host: nimbus.isLeader for nimbus in info.nimbuses or ()}


def test_the_leading_nimbus_is_killed_while_storm_shall_move_an_executor(stage_: Stage, other: OtherNimbus):
    cluster, killed = stage_.cluster, []
    assert nimbuses(cluster.nimbus)["127.0.0.1"], "the first one leads"
    with stage_.counting("nimbus_changed", workers=2) as counting:

        def kill() -> None:
            cluster.kill_daemon("nimbus")
            killed.append(time.time())

        fault = At("placement", kill, armed=False)  # PAUSE and MOVE are out; Nimbus has not been asked yet
        with counting.pilot(fault=fault) as pilot:
            pilot.checkpoint()
            fault.armed = True
            ended = pilot.reconfigure(moved("count"), 240.0)
            took_s = time.time() - killed[0]
            print(f"\n{ended['result']} {took_s:.1f} s after kill -9 of the leading Nimbus")
            assert ended["result"].split(":")[0] in ("done", "undone"), ended
            assert not counting.journal().open and counting.record().phase is Phase.RUN
            assert nimbuses(other.address)[OTHER], "the other one leads"
            whole(counting, ended["result"])
            counting.stream.settled(400, timeout_s=120)
            away = pilot.events.named("server_away")
            again = pilot.reconfigure(scaled("count", 2), 240.0)
            assert again["result"] == "done", again
            counting.stream.settled(400)
            print([event["why"] for event in away])


def whole(counting: Running, result: str) -> None:
    """Storm has every task where the placement in force wants it: all of the move, or nothing of it."""
    await_(lambda: counting.snapshot().assigned.managed, "the plugin of the other Nimbus to follow the placement")
    journal, slots = counting.journal(), counting.snapshot().assigned.slots
    assert {task: slots[task] for task in journal.new_slots} == dict(journal.new_slots), result
