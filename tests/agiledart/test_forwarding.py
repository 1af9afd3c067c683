"""Forwarders: attempts and acknowledgements one by one, and whole networks in virtual time."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.forwarding.forwarder import FULL, NO_HOP, TOO_OLD, UNCONFIRMED, Forwarder, Limits
from leeward.policies.agiledart.forwarding.messages import Ack, Name, Packet, Return
from leeward.policies.agiledart.forwarding.play import Link, World
from leeward.policies.agiledart.forwarding.timing import FIRST_S, MARGIN_S, RoundTrip
from leeward.policies.agiledart.paths.routers import NextHopRouter, ThompsonRouter

SINK, RNG = 9, Random(0)


class Fixed:
    """A router that takes the first hop, and notes what it learns."""

    def __init__(self) -> None:
        self.learned, self.heard = [], {}

    def next_hop(self, hops, *, now, rng):
        return hops[0]

    def learn(self, hop, delay_s):
        self.learned.append((hop, delay_s))

    def hear(self, hop, ahead_s):
        self.heard[hop] = ahead_s

    def ahead_s(self, hops, *, now, rng):
        return 0.25


def node(me=1, hops=(2, 3), router=None, *, hops_most=32, **limits):
    return Forwarder(me, SINK, hops, router or Fixed(), limits=Limits(hops=hops_most, **limits))


def packet(number=0, path=(0,), left_s=30.0):
    return Packet(name=Name(path[0], 0, number), path=path, left_s=left_s, stamp_s=5.0, body=b"x")


def ack(sent, ahead_s=0.5):
    end = sent.why if isinstance(sent, Return) else None
    return Ack(name=sent.name, end=end, stamp_s=sent.stamp_s, ahead_s=ahead_s)


def test_a_packet_is_acknowledged_with_j_and_sent_on_by_the_router():
    forwarder = node()
    (back, answer), (hop, sent) = forwarder.receive(0, packet(), 7.0, RNG)
    assert (back, answer) == (0, Ack(name=packet().name, end=None, stamp_s=5.0, ahead_s=0.25))
    assert hop == 2 and sent == Packet(name=packet().name, path=(0, 1), left_s=30.0, stamp_s=7.0, body=b"x")
    forwarder.receive(2, ack(sent), 7.5, RNG)
    assert forwarder._router.learned == [(2, 0.5)] and forwarder._router.heard == {2: 0.5}
    assert forwarder.in_custody == 0 and forwarder.tick(60.0, RNG) == []


def test_attempts_follow_the_measured_round_trip_and_their_time_is_learned_as_one_delay():
    forwarder = node()
    _, (_, sent) = forwarder.receive(0, packet(), 7.0, RNG)
    assert forwarder.tick(7.0 + 0.9 * FIRST_S, RNG) == []
    ((_, again),) = forwarder.tick(7.0 + FIRST_S, RNG)
    assert again.stamp_s == 7.0 + FIRST_S and again.left_s == 30.0 - FIRST_S
    forwarder.receive(2, ack(sent), 7.6, RNG)  # late, of the first attempt
    assert forwarder._router.learned == [(2, pytest.approx(0.6))]
    for number in range(1, 40):
        _, (_, sent) = forwarder.receive(0, packet(number), 10.0 + number, RNG)
        forwarder.receive(2, ack(sent), 10.1 + number, RNG)
    _, (_, sent) = forwarder.receive(0, packet(50), 60.0, RNG)
    assert forwarder.tick(60.0 + 0.1 + 0.9 * MARGIN_S, RNG) == []
    assert len(forwarder.tick(60.0 + 0.1 + 2 * MARGIN_S, RNG)) == 1


def test_a_round_trip_that_grows_is_followed():
    trip = RoundTrip()
    for seconds in [0.1] * 30 + [0.4] * 30:
        trip.measured(seconds)
    assert 0.4 < trip.timeout_s < 0.6


def test_a_silent_hop_is_left_for_another_and_tried_again_when_all_are_silent():
    forwarder, now, hops = node(attempts=2), 7.0, []
    forwarder.receive(0, packet(), now, RNG)
    for _ in range(8):
        now += FIRST_S
        hops += [send.to for send in forwarder.tick(now, RNG)]
    assert hops == [2, 3, 3, 2, 2, 3, 3, 2]
    assert forwarder._router.learned[0] == (2, 2 * FIRST_S)


def test_a_hop_that_knows_no_way_is_not_asked_again_and_without_any_the_end_goes_back():
    forwarder = node()
    _, (_, sent) = forwarder.receive(0, packet(path=(8, 0)), 7.0, RNG)
    ((hop, sent),) = forwarder.receive(2, ack(sent, None), 7.1, RNG)
    assert hop == 3
    ((back, end),) = forwarder.receive(3, ack(sent, None), 7.2, RNG)
    assert back == 0 and end == Return(name=sent.name, why=NO_HOP, path=(8,), stamp_s=7.2)
    assert [send.to for send in forwarder.tick(7.2 + FIRST_S, RNG)] == [0], "it is sent until it is acknowledged"
    forwarder.receive(0, ack(end), 8.0, RNG)
    assert forwarder.tick(20.0, RNG) == []


def test_a_node_refuses_a_packet_that_it_could_send_to_earlier_nodes_only_or_over_too_many():
    for forwarder, path in ((node(hops=(0, 8)), (8, 0)), (node(hops=(2,), hops_most=2), (8, 0))):
        ((back, answer),) = forwarder.receive(0, packet(path=path), 7.0, RNG)
        assert back == 0 and answer.ahead_s is None and forwarder.in_custody == 0


def test_a_packet_that_was_here_is_acknowledged_and_dropped():
    forwarder = node()
    forwarder.receive(0, packet(), 7.0, RNG)
    for path in ((0,), (0, 4)):
        ((_, answer),) = forwarder.receive(path[-1], packet(path=path), 8.0, RNG)
        assert answer.ahead_s == 0.25
    assert forwarder.counts["duplicates"] == 2 and forwarder.in_custody == 1


def test_a_packet_that_was_here_is_no_reason_to_refuse_it():
    forwarder = node(hops=(2, 8))
    forwarder.receive(0, packet(), 7.0, RNG)
    ((_, answer),) = forwarder.receive(8, packet(path=(0, 2, 8)), 7.5, RNG)
    assert answer.ahead_s == 0.25, "it would be reported as not forwarded, though it was"


def test_a_sink_takes_no_more_packets_than_ends_it_can_send_back():
    sink = node(me=SINK, hops=(), queue=1)
    _, (_, end) = sink.receive(0, packet(0), 7.0, RNG)
    assert sink.receive(0, packet(1), 7.0, RNG) == [] and len(sink.deliveries) == 1
    sink.receive(0, ack(end), 7.1, RNG)
    assert len(sink.receive(0, packet(1), 7.2, RNG)) == 2


def test_a_full_queue_acknowledges_nothing_and_reports_what_its_own_source_submits():
    forwarder = node(queue=1)
    forwarder.receive(0, packet(0), 7.0, RNG)
    assert forwarder.receive(0, packet(1), 7.0, RNG) == []
    assert forwarder.receive(0, packet(0), 7.0, RNG) != []
    name, sends = forwarder.submit(b"", 7.0, RNG)
    assert sends == [] and [(one.name, one.why) for one in forwarder.outcomes] == [(name, FULL)]


def test_a_packet_too_old_and_one_whose_end_never_comes_are_reported():
    forwarder = node(lifetime_s=1.0)
    name, ((_, sent),) = forwarder.submit(b"", 7.0, RNG)
    forwarder.tick(9.0, RNG)
    assert [one.why for one in forwarder.outcomes] == [TOO_OLD]
    name, ((_, sent),) = forwarder.submit(b"", 10.0, RNG)
    forwarder.receive(2, ack(sent), 10.1, RNG)
    forwarder.tick(11.9, RNG)
    assert len(forwarder.outcomes) == 1
    forwarder.tick(12.0, RNG)
    assert (forwarder.outcomes[-1].name, forwarder.outcomes[-1].why) == (name, UNCONFIRMED)
    forwarder.receive(2, Return(name=name, why="", path=(), stamp_s=1.0), 13.0, RNG)
    assert len(forwarder.outcomes) == 2, "an end that comes too late changes nothing"


def test_the_sink_delivers_once_and_its_own_packets_at_once():
    sink = node(me=SINK, hops=())
    (_, answer), (back, end) = sink.receive(0, packet(path=(8, 0)), 7.0, RNG)
    assert answer.ahead_s == 0.0 and (back, end.why, end.path) == (0, "", (8,))
    assert len(sink.receive(4, packet(path=(8, 4)), 7.0, RNG)) == 1
    name, sends = sink.submit(b"own", 8.0, RNG)
    assert [one.body for one in sink.deliveries] == [b"x", b"own"] and sends == []
    assert [(one.name, one.why) for one in sink.outcomes] == [(name, "")]


def test_messages_that_no_node_sends_are_dropped():
    forwarder = node()
    for sender, message in ((4, packet(path=(0,))), (0, packet(path=(1, 0))), (0, "hello")):
        assert forwarder.receive(sender, message, 7.0, RNG) == []
    assert forwarder.receive(2, ack(packet(), 0.1), 7.0, RNG) == []
    assert forwarder.counts["strange"] == 3 and forwarder.in_custody == 0


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_messages_and_limits_that_make_no_sense_are_refused(seconds):
    with pytest.raises(ProtocolError, match="times"):
        packet(left_s=seconds)
    with pytest.raises(ProtocolError, match="times"):
        ack(packet(), seconds)
    with pytest.raises(ConfigError, match="limits"):
        Limits(lifetime_s=seconds)


def test_paths_that_make_no_sense_are_refused():
    for path in ((), (0, 1, 0)):
        with pytest.raises(ProtocolError, match="each node once"):
            Packet(name=Name(0, 0, 0), path=path, left_s=1.0, stamp_s=0.0, body=b"")
    with pytest.raises(ConfigError, match="its own next hop"):
        node(me=2)


def diamond(router, theta_of, *, rng, hops=None):
    """0 to 3 by 1 or 2; a slot is 50 ms."""
    hops = hops or {0: (1, 2), 1: (3,), 2: (3,), 3: ()}
    nodes = {v: Forwarder(v, 3, hops[v], router()) for v in hops}
    links = {(a, b): Link(delay_s=0.025, loss=1 - theta_of.get((a, b), 1.0)) for a in hops for b in hops if a != b}
    return World(nodes, links, rng, tick_s=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_a_router_learns_the_way_that_is_better_behind_the_next_hop(seed):
    world = diamond(lambda: ThompsonRouter(slot_s=0.05), {(1, 3): 0.25, (2, 3): 0.9}, rng=Random(seed))
    for _ in range(100):
        world.submit(0)
        world.run(world.now + 0.2)
    world.run(world.now + 5)
    paths = [one.path for one in sorted(world.forwarders[3].deliveries, key=lambda one: one.name)]
    assert len(paths) == 100 and {one.why for one in world.forwarders[0].outcomes} == {""}
    assert paths[50:].count((0, 2)) >= 45


def test_packets_find_another_way_when_a_node_dies():
    world = diamond(NextHopRouter, {}, rng=Random(1))
    for number in range(200):
        if number == 50:
            world.links = {pair: link for pair, link in world.links.items() if 1 not in pair}
        world.submit(0)
        world.run(world.now + 0.2)
    world.run(world.now + 70)
    whys = [one.why for one in world.forwarders[0].outcomes]
    delivered = {one.name.number for one in world.forwarders[3].deliveries}
    assert len(whys) == 200 and whys.count("") >= 197 and {*range(60, 200)} <= delivered


def test_with_links_both_ways_all_packets_arrive():
    hops = {0: (1, 2), 1: (0, 2, 3), 2: (0, 1, 3), 3: ()}
    lossy = {(a, b): 0.5 for a in hops for b in hops}
    world = diamond(lambda: ThompsonRouter(slot_s=0.05), lossy, rng=Random(2), hops=hops)
    for source in (0, 1, 2) * 50:
        world.submit(source)
        world.run(world.now + 0.1)
    world.run(world.now + 70)
    found = [one for v in (0, 1, 2) for one in world.forwarders[v].outcomes]
    assert len(found) == 150 and {one.why for one in found} == {""}
    assert len({one.name for one in world.forwarders[3].deliveries}) == len(world.forwarders[3].deliveries) == 150
    assert fmean(len(one.path) for one in world.forwarders[3].deliveries) < 2.5
