"""Random schedules: nodes join, leave and die, applications come and go, and messages are lost and overtake."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from leeward.policies.agiledart.overlay.directory import wanted
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.platform.converged import drawn
from leeward.policies.agiledart.platform.play import Network, Play, settle
from leeward.policies.agiledart.platform.watch import Alone, reach, schedulers_of

#: Heartbeats between two times at which nodes die, and within which every key is reached again.
BETWEEN, WITHIN = 3, 10
ZONES = 2


class Schedules(RuleBasedStateMachine):
    """Ten heartbeats after the last fault every key is reached; no application is alone for two heartbeats."""

    @initialize(seed=st.integers(0, 10_000), nodes=st.integers(30, 70), lossy=st.booleans())
    def start(self, seed: int, nodes: int, lossy: bool) -> None:
        self.rng = Random(seed)
        jitter = Random(seed)
        network = Network(delay_s=lambda a, b: 0.005 + 0.04 * jitter.random(), loss=0.01 if lossy else 0.0)
        self.play, self.alone = Play(network, self.rng), Alone()
        settle(self.play, drawn(nodes, Random(seed)), zones=ZONES)
        self.play.beats(6)
        self.next, self.faults_at, self.mass_at = 1000, self.play.now, self.play.now

    @rule(beats=st.integers(1, 4))
    def pass_time(self, beats: int) -> None:
        self.alone.beats(self.play, beats)

    @rule(count=st.integers(1, 6))
    def join(self, count: int) -> None:
        seeds = tuple(self.rng.sample(self.joined(), 3))
        for _ in range(count):
            me = contact(id_of(f"node {self.next}"), self.next)
            self.play.add(Peer(me, times=self.play.times, seeds=seeds, zone=f"zone-{self.next % ZONES}", capacity=20))
            self.next += 1

    @rule()
    def leave(self) -> None:
        address = self.rng.choice(self.joined())
        self.play.send(address, self.play.peers[address].leave(self.play.now))
        self.play.kill([address])

    @rule(count=st.integers(1, 40))
    def launch(self, count: int) -> None:
        for _ in range(count):
            owner = self.play.peers[self.rng.choice(self.joined())]
            self.play.send(owner.me, owner.launch(f"app-{self.next}", owner.schedulers.zone, self.play.now))
            self.next += 1

    @rule()
    def end(self) -> None:
        for peer in list(self.play.peers.values())[::3]:
            for name in list(peer.schedulers.owned):
                self.play.send(peer.me, peer.end(name, self.play.now))

    @precondition(lambda self: self.beats_since(self.faults_at) >= BETWEEN)
    @rule()
    def one_dies(self) -> None:
        """A scheduler, if there is one."""
        active = [at for at in self.joined() if self.play.peers[at].schedulers.active]
        self.play.kill([self.rng.choice(active or self.joined())])
        self.faults_at = self.play.now

    @precondition(lambda self: self.beats_since(self.mass_at) >= WITHIN and self.beats_since(self.faults_at) >= BETWEEN)
    @rule()
    def three_of_ten_die(self) -> None:
        self.play.kill(self.rng.sample(sorted(self.play.peers), len(self.play.peers) * 3 // 10))
        self.faults_at = self.mass_at = self.play.now

    def joined(self) -> list[int]:
        return sorted(at for at, peer in self.play.peers.items() if peer.state == "joined")

    def beats_since(self, when: float) -> float:
        return (self.play.now - when) / self.play.times.heartbeat

    def teardown(self) -> None:
        if not hasattr(self, "play"):
            return
        self.alone.beats(self.play, WITHIN - 2)
        found = reach(self.play, 40, self.rng, beats=2.0, alone=self.alone)
        assert (found.right, found.circles) == (40, 0), found
        assert self.alone.longest < 2.0 and not self.alone.since, self.alone
        for zone in range(ZONES):
            owned = [
                one for peer in self.play.peers.values() for one in peer.schedulers.owned.values()
                if one.zone == f"zone-{zone}"
            ]  # fmt: skip
            assert schedulers_of(self.play)[f"zone-{zone}"] >= wanted(len(owned))


TestSchedules = pytest.mark.long(Schedules.TestCase)
TestSchedules.settings = settings(max_examples=25, stateful_step_count=12)
