"""Deployment in virtual time: a hand-made case to the millisecond, queues of the centre, and the study's rows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from leeward.policies.agiledart.dataflow.application import Application, Operator
from leeward.policies.agiledart.dataflow.joins import Join
from leeward.policies.agiledart.dataflow.placement import Placed
from leeward.policies.agiledart.experiments.deployment import (
    CENTRE,
    CONCURRENT,
    COSTS,
    DATAFLOW,
    FAST,
    SLOW,
    Deployment,
    batch,
)
from leeward.policies.agiledart.platform.deploying import Costs, Launched, Machines, by_centre, by_dataflow
from leeward.policies.agiledart.platform.zones import zoned

SOURCE, SCHEDULER, ASKED, FORWARDER, SINK, LEAF, CENTRAL = range(1, 8)
#: Decisions of 10 s, messages of 1 s, hops of 100 s, wherever the nodes are.
ROUND = Costs(decision_s=10.0, message_s=1.0, hop_s=100.0, across_s=0.0)


def machines(costs: Costs = ROUND) -> Machines:
    return Machines(costs, lambda a, b: abs(a - b))


def made(inner: int = 2) -> Launched:
    """source -> forwarder -> sink; the first operator stays on the forwarder, the others go to its leaf."""
    names = [f"o{number}" for number in range(inner)]
    operators = (
        Operator(name="source", at=SOURCE),
        *(Operator(name=name, upstream=("source",)) for name in names),
        Operator(name="sink", upstream=tuple(names), at=SINK),
    )
    hosts = {"source": SOURCE, "sink": SINK} | {
        name: LEAF if number else FORWARDER for number, name in enumerate(names)
    }
    placed = Placed(
        hosts=hosts, deciders={"source": SOURCE, "sink": SINK} | dict.fromkeys(names, FORWARDER),
        joins={("source", "sink"): Join(path=(SOURCE, FORWARDER, SINK), asked=(ASKED, SINK))},
    )  # fmt: skip
    return Launched(application=Application("app", operators), placed=placed, owner=SOURCE, scheduler=SCHEDULER)


def test_one_dataflow_takes_its_messages_one_after_another():
    registered = 10 + 100 + 1
    started = registered + 100 + 1
    asked = started + 100 + 1
    chosen = asked + 100 + 1 + 10
    forwarded = chosen + 100 + 1
    at_sink = forwarded + 100 + 1
    back = at_sink + 100 + 1
    first, second = back + 10, back + 10 + 10
    assert by_dataflow(machines(), [made(1)]) == [first]
    assert by_dataflow(machines(), [made(2)]) == [second + 100 + 1]


def test_the_centre_decides_on_all_operators_then_they_are_sent():
    assert by_centre(machines(), [made(2)], CENTRAL) == [100 + 10 * (1 + 4) + 100 + 1]


def test_a_hop_within_a_node_takes_no_time_and_distance_does():
    far = Costs(decision_s=0.0, message_s=0.0, hop_s=1.0, across_s=10.0)
    assert by_centre(machines(far), [made(1)], SOURCE) == [1.0 + 10.0 * (SINK - SOURCE)]


def test_a_node_handles_messages_in_the_order_of_their_arrival():
    ends: list[tuple[str, float]] = []
    nodes = machines()
    nodes.send(50.0, SOURCE, SINK, 5.0, lambda at: ends.append(("late", at)))
    nodes.send(0.0, SOURCE, SINK, 200.0, lambda at: ends.append(("early", at)))
    nodes.send(0.0, SOURCE, LEAF, 5.0, lambda at: ends.append(("elsewhere", at)))
    nodes.run()
    assert sorted(ends) == [("early", 300.0), ("elsewhere", 105.0), ("late", 305.0)]


def test_applications_wait_for_each_other_at_the_centre_by_all_their_work():
    alone, *_ = by_centre(machines(), [made(2)], CENTRAL)
    ends = by_centre(machines(), [made(2)] * 20, CENTRAL)
    assert max(ends) == pytest.approx(alone + 19 * 50, abs=25), "messages to one host wait, too"


def test_an_owner_reads_one_of_its_applications_after_another():
    ends = by_dataflow(machines(), [made(1)] * 3)
    assert ends[0] < ends[1] < ends[2] and ends[0] == by_dataflow(machines(), [made(1)])[0]


def pinned() -> Launched:
    """source -> middle -> sink, each on its node: nothing is left to decide but to read it."""
    operators = (
        Operator(name="source", at=SOURCE), Operator(name="middle", upstream=("source",), at=LEAF),
        Operator(name="sink", upstream=("middle",), at=SINK),
    )  # fmt: skip
    hosts = {"source": SOURCE, "middle": LEAF, "sink": SINK}
    joins = {("source", "sink"): Join(path=(SOURCE, SINK), asked=(SINK,))}
    return Launched(
        application=Application("app", operators), placed=Placed(hosts=hosts, deciders=hosts, joins=joins),
        owner=SOURCE, scheduler=SCHEDULER,
    )  # fmt: skip


def test_an_operator_pinned_between_the_ends_is_sent_to_its_node():
    assert by_dataflow(machines(), [pinned()]) == [111 + 101 + 101], "the sink is last"


def test_applications_of_other_owners_wait_at_their_scheduler_for_messages_alone():
    at_once = [replace(pinned(), owner=owner) for owner in (SOURCE, ASKED, FORWARDER)]
    assert by_dataflow(machines(), at_once) == [313 + number for number in range(3)]


def test_a_batch_is_the_same_for_a_seed_and_flat_where_the_centre_is_not():
    network = zoned(500, 20, Random(1))
    one, many = batch(network, 1, Random(2)), batch(network, 40, Random(3))
    assert [again.placed for again in batch(network, 40, Random(3))] == [launched.placed for launched in many]

    def ratio(way) -> float:
        return max(way(many)) / max(way(one))

    costs, proximity = COSTS[SLOW], network.overlay.proximity
    centre = network.overlay.ids[0]
    assert ratio(lambda some: by_centre(Machines(costs, proximity), some, centre)) > 30
    assert ratio(lambda some: by_dataflow(Machines(costs, proximity), some)) < 4


def figures(*, last: float, centre: float) -> dict[str, float]:
    """Of each cost: an application alone takes 1 s by a dataflow."""
    found: dict[str, float] = {}
    for cost in COSTS:
        found[f"{cost}; alone"] = 1.5
        for number in CONCURRENT:
            work = COSTS[cost].decision_s * 11 * (number - 1)
            found |= {f"{cost}; {DATAFLOW}; {number}": 1.0, f"{cost}; {CENTRE}; {number}": 1.0}
            found[f"{cost}; {DATAFLOW}; {number}; last"] = last if number > 1 else 1.0
            found[f"{cost}; {CENTRE}; {number}; last"] = 1.0 + centre * work
    return found


def test_rows_are_bounded():
    study = Deployment()
    (part,) = study.parts(seed=0, quick=True)
    good = study.conclude({part: figures(last=1.9, centre=1.0)})
    assert [row.met for row in good.rows if row.met is not None] == [True] * 4
    assert len(good.panels) == 2 and good.panels[0].curves[0].values == (1_000.0, *[1_900.0] * 5)
    slow = [row for row in good.rows if row.setting.startswith(SLOW)]
    assert next(row.ours for row in slow if "centre: until all" in row.metric) == pytest.approx(1 + 99 * 1.1)
    assert [row.ours for row in good.rows if "over its work" in row.metric] == pytest.approx([1.0, 1.0])
    bad = study.conclude({part: figures(last=2.3, centre=1.1)})
    assert [row.met for row in bad.rows if row.met is not None] == [True, False] * 2
    assert {row.setting.split(" for")[0] for row in bad.rows} == {FAST, SLOW}
