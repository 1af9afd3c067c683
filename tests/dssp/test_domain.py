"""Domains by hand."""

from __future__ import annotations

import pytest

from leeward.core.fields import FieldError
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node, Scale
from leeward.policies.dssp.agents.messages import Answer, Provision, Refuse, Release
from leeward.policies.dssp.agents.scaling import NodeScaling, ScalingSettings
from leeward.policies.dssp.disciplines import EarliestDeadline, QueueingDeadline
from tests.helpers.dssp_agents import (
    HERE,
    NOWHERE,
    RNG,
    THERE,
    ask,
    domain,
    messages,
    offer_of,
    provisioned,
    service,
    starts,
    terms,
)


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"capability": "noise"}, "does not offer 'noise'"),
        ({"areas": (NOWHERE,)}, "covers none"),
        ({"objective_s": 0.2}, "idle nodes already take"),
        ({"rate": 9.0}, "at this rate its nodes need"),
        ({"rate": 20.0}, "do not sustain"),
    ],
)
def test_a_domain_says_why_it_refuses_terms(changes, why):
    offer = offer_of(domain(), terms(**changes))
    assert not offer.accepted and why in offer.why


def test_what_it_says_is_the_least_is_then_promised():
    made = domain()
    for rate in (1.0, 7.0):
        refused = offer_of(made, terms(objective_s=0.2, rate=rate))
        while not refused.accepted:
            refused = offer_of(made, terms(objective_s=refused.least_s * (1 + 1e-9), rate=rate))
        assert refused.accepted


def test_without_measurements_it_promises_nothing():
    offer = offer_of(domain(measured=0), terms(objective_s=100.0))
    assert not offer.accepted and offer.least_s is None and "not known" in offer.why


def test_a_promise_counts_the_services_that_it_has():
    made = domain()
    for number in range(3):
        made.receive("p", Provision(terms=terms(service=f"s{number}", rate=2.0)), 0.0, RNG)
    assert not offer_of(made, terms(rate=5.0)).accepted
    assert offer_of(domain(), terms(rate=5.0)).accepted


def test_a_task_is_answered_once_all_its_nodes_are_through():
    made = provisioned(3)
    begun = starts(made.receive("p", ask(), 1.0, RNG))
    assert {one.node for one in begun} == {0, 1, 2}
    assert all(one.due == 3.0 and one.deadline < 3.0 for one in begun)
    assert made.executed(0, ("p", "1"), 0.1, 5.0, 1.1) == []
    assert made.executed(1, ("p", "1"), 0.1, None, 1.1) == []
    (answer,) = messages(made.executed(2, ("p", "1"), 0.2, 7.0, 1.2), Answer)
    assert (answer.tally.count, answer.tally.mean, answer.failed, answer.late) == (2, 6.0, 1, False)
    assert answer.inside_s == pytest.approx(0.2)
    assert made.open_tasks == 0


def test_a_repeated_task_is_not_executed_twice():
    made = provisioned(1)
    assert len(starts(made.receive("p", ask(), 1.0, RNG))) == 1
    assert made.receive("p", ask(), 1.1, RNG) == []  # in work
    made.executed(0, ("p", "1"), 0.1, 5.0, 1.2)
    (again,) = made.receive("p", ask(), 1.3, RNG)
    assert again.message.tally.total == 5.0 and made.counts.repeated == 2
    made.tick(100.0, RNG)
    assert len(starts(made.receive("p", ask(), 100.0, RNG))) == 1  # forgotten by then


def test_an_unknown_service_and_a_foreign_area_are_refused():
    made = provisioned(1)
    (refused,) = messages(made.receive("q", ask(), 1.0, RNG), Refuse)
    assert not refused.provisioned and "not provisioned" in refused.why
    (refused,) = messages(made.receive("p", ask(areas=(NOWHERE,)), 1.0, RNG), Refuse)
    assert refused.provisioned and "none of these areas" in refused.why


def test_a_provider_gets_no_more_than_it_has_agreed_to():
    made = Domain(
        "d",
        ["air"],
        [Node(areas=(HERE,), execution_s=0.1), Node(areas=(THERE,), execution_s=0.1)],
        DomainSettings(discipline=QueueingDeadline()),
    )
    for node in range(2):
        for _ in range(100):
            made.measured(node, 0.1)
    assert made.receive("p", Provision(terms=terms()), 0.0, RNG)[-1].message.provisioned
    begun = starts(made.receive("p", ask(areas=(HERE, THERE), objective_s=-1e9), 1.0, RNG))
    assert [one.node for one in begun] == [0]
    assert begun[0].due == 1.0 - 2.0


def test_terms_that_nobody_renews_are_over_and_others_stay():
    made = provisioned(1, lease_s=100.0)
    made.tick(99.0, RNG)
    made.receive("p", Provision(terms=terms()), 99.0, RNG)
    made.tick(150.0, RNG)
    assert starts(made.receive("p", ask("1"), 150.0, RNG))
    made.tick(200.0, RNG)
    (refused,) = messages(made.receive("p", ask("2"), 200.0, RNG), Refuse)
    assert not refused.provisioned


def test_pods_that_a_promise_rests_on_stay():
    made = domain(1, scaling=ScalingSettings(period_s=1.0, calm=1, most_pods=4))
    assert made.receive("p", Provision(terms=terms(rate=15.0)), 0.0, RNG)[-1].message.accepted
    pods = made.queues[0].pods
    assert pods > 1
    for second in range(1, 20):
        made.tick(1.1 * second, RNG)
    assert made.queues[0].pods == pods
    made.receive("p", Release(service="s"), 30.0, RNG)
    for second in range(30, 60):
        made.tick(1.1 * second, RNG)
    assert made.queues[0].pods == 1


def test_a_large_node_does_not_shrink_because_it_is_late():
    assert NodeScaling(ScalingSettings(), 0.0, started=10, late=10).decide(100, 20.0, least=100, most=100) == 100


@pytest.mark.parametrize(
    "make",
    [
        lambda: terms(rate=-9.0),
        lambda: terms(percent=100.0),
        lambda: terms(objective_s=float("nan")),
        lambda: terms(areas=()),
        lambda: ask(percent=float("nan")),
        lambda: ask(objective_s=float("inf")),
        lambda: ask(areas=(HERE,) * 300),
        lambda: ask(weight=0.0),
        lambda: ask(weight=1.5),
        lambda: service(percent=99.99999999999999),
    ],
)
def test_messages_that_cannot_be_are_not_made(make):
    with pytest.raises(FieldError):
        make()


def test_waiting_subtasks_are_ordered_and_a_passed_budget_comes_first():
    made = provisioned(1, discipline=EarliestDeadline())
    made.receive("p", ask("busy"), 0.0, RNG)
    for query, left in (("b", 1.9), ("a", 1.5), ("passed", -1.0)):
        made.receive("p", ask(query, objective_s=left), 0.0, RNG)
    order = []
    for query in ("busy", "passed", "a"):
        order += [one.task[1] for one in starts(made.executed(0, ("p", query), 0.1, 1.0, 0.1))]
    assert order == ["passed", "a", "b"]
    assert made.counts.late == 1


def test_a_stuck_node_does_not_hold_its_task_and_its_answer_is_discarded():
    made = provisioned(2, patience_s=5.0)
    made.receive("p", ask(), 0.0, RNG)
    made.receive("p", ask("2"), 0.0, RNG)
    made.executed(0, ("p", "1"), 0.1, 1.0, 0.1)
    found = made.tick(5.1, RNG)  # both nodes hang
    (answer,) = messages(found, Answer)
    assert answer.failed == 1 and answer.tally.count == 1
    assert made.executed(1, ("p", "1"), 9.0, 2.0, 9.0) == []
    assert made.open_tasks == 1


def test_a_domain_scales_a_node_on_its_late_starts_and_back():
    scaling = ScalingSettings(period_s=1.0, calm=2, most_pods=3)
    made = provisioned(1, scaling=scaling)
    for number in range(20):
        made.receive("p", ask(str(number), objective_s=0.01), 0.0, RNG)
    for number in range(20):
        made.executed(0, ("p", str(number)), 0.1, 1.0, 0.05 * number)
    assert Scale(0, 2) in made.tick(1.1, RNG)
    assert made.queues[0].pods == 2
    for second in range(2, 9):
        made.tick(1.1 * second, RNG)
    assert made.queues[0].pods == 1
