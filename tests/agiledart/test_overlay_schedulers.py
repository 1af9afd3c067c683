"""Zones, anycast, and the election of schedulers."""

from __future__ import annotations

from random import Random

import pytest

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.directory import BEST, MOST, Directory, wanted
from leeward.policies.agiledart.overlay.ids import hops_bound, id_of
from leeward.policies.agiledart.overlay.messages import Appoint, Candidate, Register, contact
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.overlay.schedulers import Owned
from leeward.policies.agiledart.platform.converged import drawn
from leeward.policies.agiledart.platform.play import Network, Play, settle
from leeward.policies.agiledart.platform.watch import Alone, schedulers_of


def settled(nodes: int, zones: int, *, seed: int = 1, loss: float = 0.0) -> Play:
    """A converged overlay that has run for long enough to have a scheduler in each zone."""
    play = Play(Network(delay_s=lambda a, b: 0.01, loss=loss), Random(seed))
    settle(play, drawn(nodes, Random(seed)), zones=zones)
    play.beats(6)
    return play


def launch(play: Play, owner: int, application: str) -> Owned:
    peer = play.peers[owner]
    play.send(owner, peer.launch(application, peer.schedulers.zone, play.now))
    return peer.schedulers.owned[application]


def candidate(number: int, capacity: float) -> Candidate:
    return Candidate(contact=contact(id_of(str(number)), number), capacity=capacity)


def test_a_zone_has_one_scheduler_for_each_50_applications_and_one_at_least():
    assert [wanted(count) for count in (0, 1, 50, 51, 100, 101)] == [1, 1, 1, 2, 2, 3]
    play = settled(120, 2)
    assert schedulers_of(play) == {"zone-0": 1, "zone-1": 1}
    owned = [launch(play, 2 * (number % 60), f"a{number}") for number in range(2 * MOST + 1)]
    play.beats(3)
    assert all(one.served for one in owned)
    assert schedulers_of(play) == {"zone-0": 3, "zone-1": 1}
    for peer in play.peers.values():
        assert len(peer.schedulers.served) <= MOST
        for name in list(peer.schedulers.owned)[1:]:  # 60 owners keep one each
            play.send(peer.me, peer.end(name, play.now))
    play.beats(8)
    assert schedulers_of(play) == {"zone-0": 2, "zone-1": 1}
    assert sum(len(peer.schedulers.served) for peer in play.peers.values()) == 60
    assert all(one.served for peer in play.peers.values() for one in peer.schedulers.owned.values())


def test_the_most_capable_members_are_elected():
    play = settled(200, 2)
    for zone in ("zone-0", "zone-1"):
        members = [peer.schedulers for peer in play.peers.values() if peer.schedulers.zone == zone]
        best = max(member._candidate.capacity for member in members)
        assert [member._candidate.capacity for member in members if member.active] == [best]


def test_an_anycast_ends_within_the_bound():
    play, rng = settled(500, 4), Random(2)
    owned = [launch(play, rng.choice(sorted(play.peers)), f"a{number}") for number in range(150)]
    play.beats(2)
    assert all(one.served for one in owned)
    assert max(one.hops for one in owned) <= hops_bound(500) + 1
    assert min(one.hops for one in owned) < max(one.hops for one in owned), "nodes on the way know schedulers, too"


@pytest.mark.parametrize("loss", [0.0, 0.03])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_schedulers_die_with_three_of_ten_nodes_and_each_application_has_another_in_time(seed: int, loss: float):
    play, rng, alone = settled(200, 2, seed=seed, loss=loss), Random(seed), Alone()
    for number in range(120):
        launch(play, rng.choice(sorted(play.peers)), f"a{number}")
    play.beats(4)
    active = [address for address, peer in play.peers.items() if peer.schedulers.active]
    play.kill([*active, *rng.sample(sorted(play.peers.keys() - active), 60 - len(active))])
    alone.beats(play, 8)
    assert alone.longest < 2.0 and not alone.since
    for zone, found in schedulers_of(play).items():
        owned = (one for peer in play.peers.values() for one in peer.schedulers.owned.values() if one.zone == zone)
        assert found == wanted(sum(1 for _ in owned)), zone


def test_a_scheduler_that_serves_nobody_is_replaced_too():
    play = settled(100, 1)
    (active,) = [address for address, peer in play.peers.items() if peer.schedulers.active]
    play.kill([active])
    play.beats(2)
    assert schedulers_of(play) == {"zone-0": 1}


def test_a_scheduler_that_leaves_tells_its_owners():
    play = settled(60, 1)
    owned = [launch(play, number, f"a{number}") for number in range(0, 60, 7)]
    play.beats(1)
    scheduler = owned[0].scheduler
    assert scheduler is not None
    alone = Alone()
    play.send(scheduler.at, play.peers[scheduler.at].leave(play.now))
    play.kill([scheduler.at])
    alone.beats(play, 0.3)
    assert all(one.served and one.scheduler != scheduler for one in owned if one.scheduler) and not alone.since


def test_the_applications_of_a_node_that_leaves_are_over():
    play = settled(40, 1)
    launch(play, 7, "a")
    play.beats(1)
    play.send(7, play.peers[7].leave(play.now))
    play.kill([7])
    play.beats(0.2)
    assert not any(peer.schedulers.served for peer in play.peers.values())


def test_a_zone_of_one_node_has_its_scheduler():
    play = settled(50, 1)
    hermit = Peer(contact(id_of("hermit"), 99), times=play.times, seeds=(1,), zone="alone")
    play.add(hermit)
    play.beats(4)
    owned = launch(play, 99, "app")
    play.beats(1)
    assert owned.served and owned.scheduler == hermit.contact and hermit.schedulers.active
    single = Play(Network(delay_s=lambda a, b: 0.01), Random(1))
    single.add(Peer(contact(5, 0), zone="all"))
    single.beats(1)
    owned = launch(single, 0, "app")
    single.beats(1)
    assert owned.served and schedulers_of(single) == {"all": 1}, "an overlay of one node, too"


def test_a_node_of_another_zone_serves_nobody_and_is_not_elected():
    peer = settled(10, 1).peers[3]
    peer.receive(4, Appoint(zone="another"), 20.0, Random(1))
    (answer,) = peer.receive(4, Register(zone="another", application="a", elected=True), 20.0, Random(1))
    assert not peer.schedulers.active and not answer.message.accepted


def test_an_application_whose_owner_has_died_is_forgotten():
    play = settled(40, 1)
    launch(play, 7, "a")
    play.beats(1)
    play.kill([7])
    play.beats(4)
    assert not any(peer.schedulers.served for peer in play.peers.values())


def test_names_that_do_not_fit_a_message_are_refused():
    peer = settled(3, 1).peers[0]
    with pytest.raises(LeewardError, match="application: its name has 0 characters"):
        peer.launch("", "zone-0", 20.0)
    with pytest.raises(LeewardError, match="zone: its name has 201 characters"):
        peer.launch("a", "z" * 201, 20.0)


def test_a_directory_passes_on_the_best_and_elects_no_member_twice():
    directory = Directory()
    directory.members(1, tuple(candidate(number, number) for number in range(20)), 0.0)
    assert [one.capacity for one in directory.best()] == [*range(19, 19 - BEST, -1)]
    first, second = directory.elect((), 0.0), directory.elect((), 0.0)
    assert first and second and (first.candidate.capacity, second.candidate.capacity) == (19, 18)
    directory.expire(2.0)
    assert directory.open((), 2.0) is None, "neither has reported"
    third = directory.elect((), 2.0)
    assert third and third.candidate.capacity == 17, "those that failed wait"


def test_schedulers_beyond_the_need_are_dismissed_after_a_while():
    directory = Directory()
    for beats in (0.0, 1.0, 2.0):
        for number, applications in ((1, 30), (2, 0), (3, 5)):
            directory.report(candidate(number, 1.0), applications, beats)
        surplus = directory.surplus(beats)
        assert [one.candidate.contact.at for one in surplus] == ([2, 3] if beats == 2.0 else [])
