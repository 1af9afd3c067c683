"""Applications placed by messages between nodes, in virtual time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from leeward.adapters.datagrams import LARGEST, number_of
from leeward.adapters.frames import Sealer
from leeward.core.errors import LeewardError
from leeward.policies.agiledart.deployment.messages import (
    KINDS,
    MOST_OPERATORS,
    Announce,
    AskRooms,
    Deploy,
    Deployment,
    Hosted,
    Over,
    PlacementIs,
    Renew,
    RoomsAre,
    Runs,
    Step,
    Wanted,
)
from leeward.policies.agiledart.overlay.ids import hops_bound, id_of, to_bytes
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.platform.play import TICKS
from tests.helpers.agiledart_field import ZONE, Field, chain


def test_operators_lie_along_the_way_of_the_join():
    field = Field(400)
    steps: list[Step] = []
    send = field.play.send

    def watch(sender: int, sends: Any) -> None:
        sends = list(sends)
        steps.extend(one.message for one in sends if isinstance(one.message, Step))
        send(sender, sends)

    field.play.send = watch  # type: ignore[method-assign]
    source, sink = field.agents[3].contact, field.agents[250].contact
    field.announce(7, "a", chain(10, source=source.id, sink=sink.id))
    (placed,) = field.decided(7, "a")
    assert placed.status == "placed", placed.why
    hosts = {one.operator: one.host.id for one in placed.hosts}
    assert len(hosts) == 10 and hosts["op-0#0"] == source.id and hosts["op-9#0"] == sink.id
    longest = max((step.path for step in steps), key=len)
    way = [one.id for one in longest[1:]]
    assert 0 < len(way) <= hops_bound(400), "a JOIN between nodes of different prefixes passes others"
    assert set(way) <= set(hosts.values()), "the first of each share stays on its node"
    near = {leaf for one in longest[1:] for leaf in field.agents[one.at].neighbours.tables.leaves}
    assert set(hosts.values()) <= {*way, *near, source.id, sink.id}
    assert field.held() == dict.fromkeys((("a", name) for name in hosts), 1)
    for before, after in pairwise(longest):
        assert before != after


def seconds(lost: str | None) -> float:
    """Until an application is placed; the first message of this kind gets lost after it was announced."""
    field = Field(200)
    send, left = field.play.send, [lost]

    def lose(sender: int, sends: Any) -> None:
        kept = []
        for one in sends:
            if type(one.message).__name__ in left:
                left.clear()
            else:
                kept.append(one)
        send(sender, kept)

    field.play.send = lose  # type: ignore[method-assign]
    source, sink = field.agents[3].contact, field.agents[150].contact
    began = field.play.now
    field.announce(7, "a", chain(10, source=source.id, sink=sink.id))
    (placed,) = field.decided(7, "a")
    assert placed.status == "placed", placed.why
    assert lost is None or not left, "there was such a message"
    return field.play.now - began


@pytest.mark.parametrize(
    "kind",
    [
        "Deploy", "Deployment", "Step", "Took", "AskLoads", "LoadsAre", "Passed", "Lay", "Laid", "Reserve", "Reserved",
    ],
)  # fmt: skip
def test_a_message_that_gets_lost_delays_an_application_by_two_acknowledgements_at_most(kind: str):
    times = Times()
    assert seconds(kind) <= seconds(None) + 2 * times.ack + 2 * times.heartbeat / TICKS


def test_rooms_are_kept_while_the_owner_lives_and_free_when_the_application_is_over():
    field = Field(30)
    field.announce(2, "a", chain(6))
    assert field.decided(2, "a")[0].status == "placed"
    field.play.beats(20)
    assert sum(field.held().values()) == 6
    field.tell(2, Over(application="a"))
    field.play.beats(1)
    assert not field.held() and field.placement(2, "a").status == "unknown"


def test_rooms_are_free_after_their_owner_has_died():
    field = Field(30)
    field.announce(2, "a", chain(6))
    assert field.decided(2, "a")[0].status == "placed"
    field.play.kill([2])
    field.play.beats(14)
    assert not field.held()


def test_more_operators_than_all_nodes_hold_are_refused_with_a_reason_and_leave_no_room_taken():
    field = Field(40, capacity=1)
    field.announce(5, "large", chain(41))
    (large,) = field.decided(5, "large")
    assert large.status == "refused" and "reaches 40 nodes by leaf sets, and they are full" in large.why
    field.play.beats(1)
    assert not field.held()
    field.announce(5, "fits", chain(40))
    (fits,) = field.decided(5, "fits")
    assert fits.status == "placed", fits.why
    assert set(field.held().values()) == {1} and len({one.host for one in fits.hosts}) == 40


def test_two_that_fit_only_one_after_the_other_do_not_overfill_a_node():
    field = Field(20, capacity=2)
    for number, at in enumerate((1, 4, 9)):
        field.announce(at, f"app-{number}", chain(15))
    for _ in range(200):
        field.play.beats(0.1)
        field.check()
    found = [field.placement(at, f"app-{number}") for number, at in enumerate((1, 4, 9))]
    assert {one.status for one in found} <= {"placed", "refused"}
    placed = [one for one in found if one.status == "placed"]
    assert 1 <= len(placed) <= 2
    assert sum(field.held().values()) == 15 * len(placed)


def test_pinned_operators_find_the_one_matching_that_holds_them():
    field = Field(12, capacity=1)
    a, b = (field.agents[at].contact for at in (3, 8))
    both, one = (to_bytes(a.id), to_bytes(b.id)), (to_bytes(a.id),)
    operators = (Wanted(name="s", nodes=both), Wanted(name="t", upstream=(0,), nodes=one))
    field.announce(0, "pair", operators)
    (placed,) = field.decided(0, "pair")
    assert {one.operator: one.host for one in placed.hosts} == {"s": b, "t": a}
    field.announce(0, "third", (Wanted(name="s", nodes=both),))
    (refused,) = field.decided(0, "third")
    assert refused.status == "refused" and "finds no room on the 2 nodes" in refused.why


def test_a_pin_to_a_node_that_is_not_there_is_refused_by_its_id():
    field = Field(12)
    field.announce(0, "lost", (Wanted(name="s", nodes=(bytes(16),)),))
    (refused,) = field.decided(0, "lost")
    assert refused.status == "refused" and f"Not in the overlay: {'00' * 16}" in refused.why


@pytest.mark.parametrize(
    "operators",
    [
        (Wanted(name="a"), Wanted(name="a", upstream=(0,))),
        (Wanted(name="a", upstream=(0,)),),
        (Wanted(name="a"), Wanted(name="b", upstream=(5,))),
        (Wanted(name="a"), Wanted(name="b", upstream=(-1,))),
    ],
    ids=["twice", "circle", "unknown", "below 0"],
)
def test_what_is_no_dataflow_is_refused(operators: tuple[Wanted, ...]):
    field = Field(12)
    field.announce(0, "wrong", operators)
    (refused,) = field.decided(0, "wrong")
    assert refused.status == "refused" and "application 'wrong'" in refused.why


def test_what_does_not_fit_a_message_is_an_error():
    with pytest.raises(LeewardError, match="401 operators"):
        Announce(application="a", zone="z", operators=tuple(Wanted(name=str(n)) for n in range(MOST_OPERATORS + 1)))
    with pytest.raises(LeewardError, match="0 operators"):
        Announce(application="a", zone="z", operators=())
    with pytest.raises(LeewardError, match=r"'a': its operators take 6\d{4} bytes in a message"):
        Announce(application="a", zone="z", operators=tuple(Wanted(name=f"{n:0200}") for n in range(210)))
    with pytest.raises(LeewardError, match="201 characters"):
        Wanted(name="x" * 201)
    with pytest.raises(LeewardError, match="3 bytes"):
        Wanted(name="x", nodes=(b"abc",))


def test_a_scheduler_that_dies_while_it_places_is_replaced():
    field = Field(40, zones=1)
    owner = 3
    field.announce(owner, "a", chain(12))
    field.until(lambda: field.placement(owner, "a").status == "placing")
    scheduler = field.agents[owner].schedulers.owned["a"].scheduler
    assert scheduler is not None
    if scheduler.at == owner:
        pytest.fail("the seed's owner is its own scheduler: take another one")
    field.play.kill([scheduler.at])
    (placed,) = field.decided(owner, "a")
    assert placed.status == "placed", placed.why
    field.play.beats(14)
    assert field.held() == dict.fromkeys((("a", one.operator) for one in placed.hosts), 1)


def test_a_host_that_dies_has_its_application_placed_anew():
    field = Field(40)
    field.announce(3, "a", chain(8))
    (placed,) = field.decided(3, "a")
    victim = next(one.host.at for one in placed.hosts if one.host.at != 3)
    field.play.kill([victim])
    field.play.beats(8)
    (again,) = field.decided(3, "a")
    assert again.status == "placed" and victim not in {one.host.at for one in again.hosts}
    field.play.beats(14)
    assert field.held() == dict.fromkeys((("a", one.operator) for one in again.hosts), 1)


def test_a_refusal_before_a_placement_does_not_count_after_it():
    field = Field(40)
    field.announce(3, "a", chain(8))
    (placed,) = field.decided(3, "a")
    field.play.kill([next(one.host.at for one in placed.hosts if one.host.at != 3)])
    field.agents[3].owners.all["a"].refusals = 1
    field.play.beats(8)
    assert field.placement(3, "a").status == "placed" and field.agents[3].owners.all["a"].refusals == 0


def test_what_runs_counts_where_it_runs_even_beyond_the_capacity():
    field = Field(12, capacity=2)
    node = field.agents[5].contact
    hosts = tuple((f"op#{number}", to_bytes(node.id)) for number in range(3))
    field.tell(0, Runs(application="live", zone=ZONE, hosts=hosts))
    field.play.beats(3)
    assert field.agents[5].rooms.load.held == 3
    field.announce(1, "other", (Wanted(name="s", nodes=(to_bytes(node.id),)),))
    assert field.decided(1, "other")[0].status == "refused"
    field.play.kill([0])  # another service leads it, whose agent tells the same
    field.tell(2, Runs(application="live", zone=ZONE, hosts=hosts[:1]))
    field.play.beats(3)
    assert field.agents[5].rooms.operators() == (("live", "op#0"),)
    field.play.beats(14)
    assert field.agents[5].rooms.operators() == (("live", "op#0"),)


def test_the_newest_of_two_owners_stays_the_only_one():
    field = Field(12)
    node = to_bytes(field.agents[5].contact.id)
    field.tell(0, Runs(application="live", zone=ZONE, hosts=(("a", node), ("b", node))))
    field.play.beats(2)
    field.tell(1, Runs(application="live", zone=ZONE, hosts=(("a", node),)))
    field.play.beats(3)
    assert field.placement(0, "live").status == "unknown" and field.agents[5].rooms.operators() == (("live", "a"),)
    field.tell(0, Runs(application="live", zone=ZONE, hosts=(("b", node),)))
    field.play.beats(3)
    assert field.placement(1, "live").status == "unknown" and field.agents[5].rooms.operators() == (("live", "b"),)


def test_an_owner_whose_clock_is_behind_takes_over_all_the_same():
    field = Field(12)
    node = to_bytes(field.agents[5].contact.id)
    field.agents[0]._born = 10**15
    field.tell(0, Runs(application="live", zone=ZONE, hosts=(("a", node),)))
    field.play.beats(2)
    field.tell(1, Runs(application="live", zone=ZONE, hosts=(("b", node),)))
    field.play.beats(3)
    assert field.agents[5].rooms.operators() == (("live", "b"),) and field.placement(0, "live").status == "unknown"
    field.tell(1, Runs(application="live", zone=ZONE, hosts=(("b", node), ("c", node))))
    field.play.beats(16)
    assert field.agents[5].rooms.operators() == (("live", "b"), ("live", "c"))


def test_an_application_that_is_announced_to_two_owners_is_placed_once():
    field = Field(12)
    for at in (0, 1):
        field.announce(at, "a", chain(6))
        field.decided(at, "a")
    field.play.beats(20)
    assert sorted(field.placement(at, "a").status for at in (0, 1)) == ["placed", "unknown"]
    assert sum(field.held().values()) == 6


def test_a_node_tells_of_its_rooms():
    field = Field(12)
    field.announce(0, "a", chain(5))
    field.decided(0, "a")
    told = [field.tell(at, AskRooms())[0] for at in sorted(field.agents)]
    assert all(isinstance(one, RoomsAre) for one in told)
    assert sum(one.held for one in told) == 5 and told[0].owned == (("a", "placed"),)


def test_an_older_attempt_does_not_take_a_room_from_a_newer_one():
    field = Field(5)
    rooms = field.agents[0].rooms
    assert rooms.reserve("a", 2, "x", 0.0) and not rooms.reserve("a", 1, "y", 0.0)
    assert rooms.renew("a", 1, ("x",), 0.0, running=False) is None
    assert rooms.reserve("a", 3, "y", 0.0) and rooms.operators() == (("a", "y"),)
    rooms.release("a", 2, ())
    assert rooms.operators() == (("a", "y"),)


def test_the_largest_application_fits_a_datagram():
    longest, most = "x" * 50, MOST_OPERATORS
    operators = tuple(Wanted(name=f"{longest[:40]}{n:06}") for n in range(most))
    Announce(application=longest, zone="z", operators=operators)
    host = contact(id_of("a"), number_of("255.255.255.255", 65535))
    hosts = tuple(Hosted(operator=one.name, host=host, machine="255.255.255.255") for one in operators)
    messages = (
        Deployment(application=longest, attempt=2**62, status="placed", hosts=hosts),
        PlacementIs(application=longest, status="placed", hosts=hosts),
        Deploy(application=longest, attempt=2**62, operators=operators),
    )
    sealer = Sealer(KINDS, b"k" * 32, host.at, 2**62)
    assert all(len(sealer.seal(message)) <= LARGEST for message in messages)


def test_every_message_has_a_number():
    assert len(set(KINDS)) == len(KINDS) and Renew in KINDS
