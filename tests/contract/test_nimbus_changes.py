"""No Nimbus leads in the middle of a restart, and then another one does: the move is done or undone, never half.

Storm places when the Nimbus that leads is asked to, and only then: the plugin of the new leader is made here.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamparse.thrift import storm_thrift

from leeward.core.control import Phase
from tests.helpers.control_commands import NIMBUS, App, Bots, actions, beat, end_started, events, finish, leeward
from tests.helpers.control_twins import SLOTS
from tests.helpers.nimbus_twin import Cluster as NimbusState
from tests.helpers.nimbus_twin import serving
from tests.helpers.servers import RedisServer, ZooKeeperServer, free_port
from tests.helpers.waiting import wait_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]

OTHER = free_port()


class OneOfTwo(App):
    """A Nimbus that knows another one."""

    def getClusterInfo(self):
        info = super().getClusterInfo()
        info.nimbuses = [
            storm_thrift.NimbusSummary(
                host="127.0.0.1", port=port, uptime_secs=1, isLeader=port == self.cluster.leader, version="2"
            )
            for port in (NIMBUS, OTHER)
        ]
        return info


class Placed(Bots):
    """Bots whose plugin places what is wanted once the other Nimbus was asked to rebalance."""

    def __init__(self, hosts: str, state: NimbusState) -> None:
        self._state = state
        super().__init__(hosts)

    def _act(self) -> None:
        record = self.record()
        asked = any(port == OTHER for port, *_ in self._state.calls)
        if record is None or record.phase is not Phase.MOVE or asked:
            super()._act()


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[tuple[ZooKeeperServer, NimbusState]]:
    state = NimbusState()
    with (
        ZooKeeperServer(tmp_path_factory.mktemp("zoo")) as zoo,
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        serving(state, NIMBUS, OneOfTwo),
        serving(state, OTHER, OneOfTwo),
    ):
        App.redis_url, App.zookeeper_port = server.url, zoo.port
        yield zoo, state


@pytest.fixture
def bots(servers) -> Iterator[Placed]:
    zoo, state = servers
    state.leader, state.calls = NIMBUS, []
    beat()
    bots = Placed(zoo.hosts, state)
    yield bots
    end_started()
    bots.close()


@pytest.mark.parametrize(("until", "ending"), [("rebalance_failed", "done"), ("reconfiguration_undone", "undone")])
def test_the_nimbus_that_leads_changes_in_the_middle(servers, bots: Placed, tmp_path: Path, until: str, ending: str):
    state, file = servers[1], tmp_path / "events.jsonl"
    options = ("-o", "policy=none", "-o", "mode=restart", "-o", "move_s=0.5", "-o", "pause_s=60")
    service = leeward("serve", "app", *options, "--nimbus", f"127.0.0.1:{OTHER}", "--events", file)
    wait_for(lambda: "leading" in actions(file))
    bots.pausing = False
    asking = leeward("reconfigure", "app", "--replicas", "work=n3:1", "--nimbus", f"127.0.0.1:{OTHER}")
    wait_for(lambda: bots.record() is not None and bots.record().phase is Phase.PAUSE)
    state.leader = 0
    bots.pausing = True
    wait_for(lambda: until in actions(file), 90.0)
    assert bots.record().phase is Phase.MOVE and not [call for call in state.calls if call[0] == OTHER]
    state.leader = OTHER
    wait_for(lambda: "reconfiguration_ended" in actions(file), 90.0)
    (end,) = [event for event in events(file) if event["action"] == "reconfiguration_ended"]
    assert end["result"].partition(":")[0] == end["ending"] == ending, end
    assert bots.record().phase is Phase.RUN
    assert (bots.slots == SLOTS) == (ending == "undone"), "all of it, or nothing"
    code, out, err = finish(asking)
    assert code == (0 if ending == "done" else 1) and out.startswith(ending), err
    assert not [event for event in events(file) if event["action"] in ("alert", "held", "leadership_lost")]
    service.send_signal(signal.SIGTERM)
    assert finish(service)[0] == 0
