"""Nodes that join, die, leave and route messages, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import BITS, hops_bound, id_of, logical_ids
from leeward.policies.agiledart.overlay.messages import (
    KINDS,
    LARGEST_BODY,
    Anycast,
    Candidate,
    Contact,
    Heartbeat,
    Join,
    Known,
    Ping,
    Routed,
    Withdraw,
    contact,
)
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.overlay.tables import SIDE
from leeward.policies.agiledart.platform.converged import drawn
from leeward.policies.agiledart.platform.play import Network, Play, settle

NEAR = Network(delay_s=lambda a, b: 0.02)


def grown(count: int, *, seed: int = 1, network: Network = NEAR, gap: float = 0.2) -> Play:
    """An overlay that so many nodes have joined, one after the other."""
    play = Play(network, Random(seed))
    for at in range(count):
        play.add(Peer(contact(id_of(f"{seed} {at}"), at), times=play.times, seeds=tuple(range(min(at, 3)))))
        play.beats(gap)
    play.beats(6)
    return play


def assert_leaf_sets(play: Play) -> None:
    ids = sorted(peer.contact.id for peer in play.peers.values())
    reach = min(SIDE, len(ids) - 1)
    for peer in play.peers.values():
        at, leaves = ids.index(peer.contact.id), peer.neighbours.tables.leaves
        assert leaves.after == tuple(ids[(at + step) % len(ids)] for step in range(1, reach + 1)), peer.me
        assert leaves.before == tuple(ids[at - step] for step in range(1, reach + 1)), peer.me


def ask(play: Play, source: int, key: int) -> int:
    number, sends = play.peers[source].lookup(key, play.now)
    play.send(source, sends)
    return number


def answer(play: Play, source: int, number: int) -> list[int] | None:
    """Addresses of the nodes that a message has passed; None: no answer yet."""
    arrived = play.peers[source].lookups.all[number].answer
    return [passed.at for passed in arrived.path] if arrived else None


def lookup(play: Play, source: int, key: int, beats: float = 2.0) -> list[int] | None:
    """The same, after so much time."""
    number = ask(play, source, key)
    play.beats(beats)
    return answer(play, source, number)


@settings(max_examples=15)
@example(count=41, seed=762, loss=0.05, gap=0.0)
@given(st.integers(1, 45), st.integers(0, 1000), st.sampled_from([0.0, 0.05]), st.sampled_from([0.0, 0.03, 1.0]))
def test_nodes_that_join_at_any_rate_find_their_neighbours(count: int, seed: int, loss: float, gap: float):
    play = grown(count, seed=seed, network=Network(delay_s=lambda a, b: 0.01 + (a + b) % 5 / 50, loss=loss), gap=gap)
    play.beats(6)
    assert {peer.state for peer in play.peers.values()} == {"joined"}
    for _ in range(8 if loss else 0):  # a node that lost three pings is suspected until it is heard again
        with suppress(AssertionError):
            assert_leaf_sets(play)
            break
        play.beats(1)
    assert_leaf_sets(play)
    if gap == 1.0 and not loss:
        assert max(peer.join_hops for peer in play.peers.values()) <= hops_bound(count) + 1
    rng = Random(seed)
    for _ in range(5):
        key = rng.getrandbits(BITS)
        path = lookup(play, rng.randrange(count), key)
        assert path is not None and len(set(path)) == len(path)
        assert loss or path[-1] == play.root(key).me


def test_every_key_is_reached_after_three_of_ten_die_at_once():
    converged = drawn(300, Random(5))
    play = Play(Network(delay_s=lambda a, b: 0.01, loss=0.01), Random(6))
    settle(play, converged)
    play.beats(2)
    rng = Random(7)
    play.kill(rng.sample(sorted(play.peers), 90))
    play.beats(10)
    assert_leaf_sets(play)
    asked = [(rng.choice(sorted(play.peers)), rng.getrandbits(BITS)) for _ in range(300)]
    numbers = [ask(play, source, key) for source, key in asked]
    play.beats(1)
    for (source, key), number in zip(asked, numbers, strict=True):
        path = answer(play, source, number)
        assert path is not None and path[-1] == play.root(key).me


def test_a_hop_that_has_just_died_is_passed_by():
    converged = drawn(100, Random(8))
    play = Play(NEAR, Random(9))
    settle(play, converged)
    play.beats(1)
    rng = Random(10)
    for _ in range(15):
        source, key = rng.choice(sorted(play.peers)), rng.getrandbits(BITS)
        peer = play.peers[source]
        hop = peer.neighbours.tables.next_hop(key)
        if hop is None:
            continue
        victim = peer.neighbours.contacts[hop].at
        play.kill([victim])
        path = lookup(play, source, key)
        assert path is not None and victim not in path and path[-1] == play.root(key).me


def test_nodes_that_leave_are_replaced_before_anybody_misses_them():
    play = grown(40)
    for address in (5, 6, 7, 8, 30):
        peer = play.peers[address]
        play.send(address, peer.leave(play.now))
        play.kill([address])
        assert peer.state == "left" and peer.tick(play.now, Random(1)) == []
        play.beats(0.5)
        assert_leaf_sets(play)


def test_an_id_that_is_taken_is_refused_with_a_clear_answer():
    play = grown(30)
    twin = Peer(contact(play.peers[17].contact.id, 99), times=play.times, seeds=(3,))
    play.add(twin)
    play.beats(3)
    assert twin.state == "refused" and twin.taken_by == 17
    with pytest.raises(LeewardError, match=r"a node at address 17 has it already.*name of its own"):
        raise twin.refusal() or AssertionError
    assert play.peers[17].refusal() is None
    assert_leaf_sets_of(play, without=99)
    play.kill([17])
    play.beats(3)
    again = Peer(contact(twin.contact.id, 98), times=play.times, seeds=(3,))
    play.add(again)
    play.beats(3)
    assert again.state == "joined", "the first one is dead"


def assert_leaf_sets_of(play: Play, without: int) -> None:
    held = play.peers.pop(without)
    assert_leaf_sets(play)
    play.peers[without] = held


@pytest.mark.parametrize("nodes", [10, 12])
@pytest.mark.parametrize("seed", range(12))
def test_of_two_that_join_at_once_under_one_id_one_stays(seed: int, nodes: int):
    play = Play(NEAR, Random(seed))
    for at in [0, 9, 5] if nodes == 10 else range(nodes):
        node = id_of("twin") if at in (5, 9) else id_of(str(at))
        play.add(Peer(contact(node, at), times=play.times, seeds=(0,) if at else ()))
    play.beats(6)
    states = {play.peers[at].state: at for at in (5, 9)}
    assert states.keys() == {"joined", "refused"}
    assert play.peers[states["refused"]].taken_by == states["joined"]
    assert_leaf_sets_of(play, without=states["refused"])


def test_a_forged_contact_does_not_take_a_living_node_s_place():
    play = grown(5)
    victim, other = play.peers[2], play.peers[1]
    other.receive(77, Heartbeat(me=contact(victim.contact.id, 77)), play.now, Random(1))
    assert other.neighbours.contacts[victim.contact.id].at == 2
    other.receive(77, Heartbeat(me=contact(other.contact.id, 77)), play.now, Random(1))
    assert other.contact.id not in other.neighbours.contacts


def test_a_node_that_starts_again_at_its_address_is_back():
    play = grown(20)
    play.kill([4])
    play.beats(0.5)
    play.add(Peer(contact(id_of("1 4"), 4), times=play.times, seeds=(0, 1), born=10**6))
    play.beats(3)
    assert play.peers[4].state == "joined"
    assert_leaf_sets(play)


def test_another_node_at_the_address_of_a_dead_one_replaces_it():
    play = grown(20)
    play.kill([4])
    play.beats(0.5)
    play.add(Peer(contact(id_of("another"), 4), times=play.times, seeds=(0, 1), born=10**6))
    play.beats(6)
    assert_leaf_sets(play)


def test_a_machine_joins_as_several_logical_nodes():
    play = grown(10)
    for at, node in enumerate(logical_ids("strong", 3), start=50):
        play.add(Peer(contact(node, at), times=play.times, seeds=(0,)))
    play.beats(6)
    assert_leaf_sets(play)


def test_round_trips_are_measured_and_the_nearer_candidate_stays():
    """Even addresses are near each other, as are odd ones; a table prefers those of its own kind."""
    network = Network(delay_s=lambda a, b: 0.005 if a % 2 == b % 2 else 0.06)
    converged = drawn(200, Random(11))
    play = Play(network, Random(12), Times(heartbeat=2.0, ack=0.3))
    settle(play, converged)
    newcomer = Peer(contact(id_of("newcomer"), 999), times=play.times, seeds=(150,))
    play.add(newcomer)
    play.beats(12)
    trips = newcomer.neighbours.round_trips
    assert all(abs(trips[node] - 0.01) < 0.001 or abs(trips[node] - 0.12) < 0.001 for node in trips)
    routes = newcomer.neighbours.tables.routes
    first = [newcomer.neighbours.contacts[node] for node in routes.row(0)]
    assert len(first) == 15 and sum(other.at % 2 for other in first) >= 12


def test_a_node_alone_and_one_that_has_lost_all_others():
    alone = grown(1)
    assert lookup(alone, 0, 123) == [0]
    play = grown(4)
    play.kill([0, 1, 2])
    play.beats(3)
    assert lookup(play, 3, 123) == [3], "it is the root of every key now"
    play.add(Peer(contact(id_of("again"), 0), times=play.times, seeds=(), born=9))
    play.beats(12)
    assert_leaf_sets(play)


def test_a_message_that_nobody_answers_is_given_up():
    play = grown(2)
    peer = play.peers[0]
    number = ask(play, 0, next(iter(peer.neighbours.tables.leaves)))
    deaf = Play(Network(delay_s=lambda a, b: 0.01, loss=1.0), Random(1))
    deaf.now = play.now
    peer.forwarding.onward = lambda message, now: True  # type: ignore[method-assign]
    deaf.add(peer)
    deaf.beats(15)
    assert peer.lookups.all[number].given_up and answer(deaf, 0, number) is None


def test_an_application_is_told_of_a_body_that_is_too_large_and_of_a_node_that_has_not_joined():
    peer = grown(1).peers[0]
    with pytest.raises(LeewardError, match=f"body: {LARGEST_BODY + 1} bytes"):
        peer.lookup(1, 0.0, body=b"x" * (LARGEST_BODY + 1))
    with pytest.raises(LeewardError, match="it is joining"):
        Peer(contact(5, 5), seeds=(1,)).lookup(1, 0.0)


def test_with_wrong_leaf_sets_no_message_passes_a_node_twice():
    play = grown(30)
    key = id_of("somewhere")
    for peer in play.peers.values():  # every leaf set has lost more than half of its nodes
        for node in Random(peer.me).sample(sorted(peer.neighbours.tables.leaves), 14):
            peer.neighbours.tables.leaves.remove(node)
    path = lookup(play, 3, key, 0.4)
    assert path is not None and len(set(path)) == len(path)


CONTACTS = st.builds(contact, st.integers(0, 3).map(lambda number: id_of(f"1 {number}")), st.integers(0, 9))
KEYS = st.binary(min_size=16, max_size=16)
st.register_type_strategy(Contact, CONTACTS)
CANDIDATES = st.builds(Candidate, contact=CONTACTS, capacity=st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(Candidate, CANDIDATES)


def anything(kind: type) -> st.SearchStrategy[object]:
    """A message of this kind with any values that may be in a frame."""
    fields: dict[str, st.SearchStrategy[object]] = {"key": KEYS} if issubclass(kind, Routed) else {}
    if kind is Anycast:
        fields["avoid"] = st.lists(KEYS, max_size=3).map(tuple)
    return st.builds(kind, **fields)


MESSAGES = st.tuples(st.integers(-3, 9), st.floats(0, 9), st.one_of(*map(anything, KINDS)))


@settings(max_examples=40)
@example(messages=[(-1, 0.0, Withdraw(zone="", application=""))])
@given(st.lists(MESSAGES, max_size=20))
def test_no_message_brings_a_node_down(messages: list[tuple[int, float, object]]):
    """Each is sealed by a node that errs or lies."""
    play = grown(5)
    peer, rng, now = play.peers[2], Random(1), play.now
    for sender, later, message in messages:
        now += later
        peer.receive(sender, message, now, rng)
        peer.tick(now, rng)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Candidate(contact=contact(1, 1), capacity=float("nan")),
        lambda: Anycast(key=bytes(16), origin=contact(1, 1), number=1, zone="z", application="a", avoid=(b"short",)),
        lambda: Heartbeat(me=Contact(node=bytes(15), at=1)),
        lambda: Heartbeat(me=Contact(node=bytes(16), at=-1)),
    ],
)
def test_values_that_make_no_sense_are_refused(make: Callable[[], object]):
    with pytest.raises(LeewardError):
        make()


def test_messages_of_strangers_do_no_harm():
    """A joining node is not ready to route, and a pong to no ping says nothing."""
    joining = Peer(contact(5, 5), seeds=(1,))
    assert joining.receive(9, Join(key=bytes(16), origin=contact(9, 9), number=1), 0.0, Random(1)) == []
    assert joining.receive(9, Ping(number=1, me=None), 0.0, Random(1))[0].message.me is None
    joining.receive(9, Known(contacts=(contact(5, 5),)), 0.0, Random(1))
    assert len(joining.neighbours.contacts) == 0
