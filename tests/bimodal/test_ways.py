"""Re-allocation by messages: ways of stream hops that change while tasks run (spec of bi-modal links, section 3)."""

from __future__ import annotations

from dataclasses import replace

from leeward.policies.bimodal.mapping.rules import LeastCost, Method, by_public_hops, public_hops_choice
from leeward.policies.bimodal.model.values import Link, Network, Server, Task
from tests.helpers.bimodal_bag import MOVING, Bag


def line(uplink: float) -> tuple[Bag, Task]:
    """Two servers and a link that carries one of two tasks; server 0 hosts the service and delivers."""
    servers = [Server(id=v, cpu=9.0, services=frozenset({0} if v == 0 else ()), uplink=uplink) for v in (0, 1)]
    network = Network(servers, [Link(a=0, b=1, bandwidth=1.0)], direction="each")
    bag = Bag(network, Method(rule=LeastCost(by_public_hops), choice=public_hops_choice, public=True), 1, MOVING)
    task = Task(name="a", source=1, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(1.0, 1.0), max_null=1)
    bag.gossip()
    bag.deliver_all()
    return bag, task


def ways(bag: Bag) -> dict[str, bool]:
    """Task -> its hop from server 1 goes over the public network."""
    return {sent.flow.task: sent.flow.public for sent in bag.agents[1].flows}


def pass_periods(bag: Bag, count: int = 1) -> None:
    for _ in range(count):
        bag.pass_time(7.0)
        bag.deliver_all()
        bag.gossip()
        bag.deliver_all()


def test_a_hop_over_the_public_network_takes_the_link_that_another_task_has_left():
    bag, task = line(uplink=9.0)
    for name in ("a", "b"):
        bag.send(0, bag.agents[0].submit(replace(task, name=name), bag.now))
        bag.deliver_all()
    before = ways(bag)
    assert sorted(before.values()) == [False, True]
    loser, winner = (next(name for name, public in before.items() if public is kind) for kind in (True, False))
    pass_periods(bag, 3)
    assert ways(bag) == before, "nothing is better for anybody"
    bag.send(0, bag.agents[0].end(winner))
    bag.deliver_all()
    pass_periods(bag)
    assert ways(bag) == {loser: False}
    assert [route.servers for route in bag.agents[1].flows.routes()] == [(1, 0)]
    assert not any(r.kind == "uplink" for r in bag.agents[1].account.used), "the uplink is free again"
    pass_periods(bag, 8)
    assert ways(bag) == {loser: False}, "its lease is extended"
    assert bag.agents[0].portals[loser].turn == 1
    bag.send(0, bag.agents[0].end(loser))
    bag.deliver_all()
    assert not any(agent.account.used for agent in bag.agents.values())


def test_two_hops_change_places_when_the_one_on_the_public_network_is_behind():
    bag, task = line(uplink=2.0)
    for name in ("a", "b"):
        bag.send(0, bag.agents[0].submit(replace(task, name=name), bag.now))
        bag.deliver_all()
    before = ways(bag)
    behind = next(name for name, public in before.items() if public)
    bag.agents[1].observe(behind, 0, 0.2, 1.0, limited=True)
    pass_periods(bag, 2)
    assert ways(bag) == {name: not public for name, public in before.items()}
    assert bag.wanted(1) == {r: a for r, a in bag.agents[1].account.used.items() if a > 1e-9}


def test_a_task_whose_way_is_lost_is_mapped_again():
    """Its hop was diverted over server 2, which dies: a renewal is not confirmed."""
    servers = [Server(id=v, cpu=9.0, services=frozenset({0} if v == 0 else ()), uplink=1.0) for v in (0, 1, 2)]
    network = Network(servers, [Link(a=1, b=2, bandwidth=1.0), Link(a=2, b=0, bandwidth=1.0)], direction="each")
    bag = Bag(network, Method(rule=LeastCost(by_public_hops), choice=public_hops_choice, public=True), 1, MOVING)
    task = Task(name="a", source=1, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(1.0, 1.0), max_null=0)
    for _ in range(3):
        bag.gossip()
        bag.deliver_all()
    bag.send(0, bag.agents[0].submit(task, bag.now))
    bag.deliver_all()
    assert ways(bag) == {"a": True}, "no map may pass an empty server"
    pass_periods(bag)
    assert [route.servers for route in bag.agents[1].flows.routes()] == [(1, 2, 0)], "re-allocation may"
    bag.dead.add(2)
    pass_periods(bag, 12)
    portal = bag.agents[0].portals["a"]
    assert portal.status == "running" and portal.turn > 1
    assert ways(bag) == {"a": True}
