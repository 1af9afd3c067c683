"""Domains and providers by hand, and together in virtual time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from leeward.core.fields import FieldError
from leeward.core.members import To
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node, Scale, Start
from leeward.policies.dssp.agents.messages import (
    Answer,
    Apart,
    Ask,
    Negotiate,
    Offer,
    Provision,
    Refuse,
    Release,
    Tally,
    Terms,
)
from leeward.policies.dssp.agents.play import Play, Weather
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings, Result
from leeward.policies.dssp.agents.scaling import NodeScaling, ScalingSettings
from leeward.policies.dssp.agents.subscriptions import Subscription, Subscriptions, Trigger
from leeward.policies.dssp.disciplines import EarliestDeadline, QueueingDeadline, Salvage
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.weights import Lateness, learned

HERE, THERE, NOWHERE = Area(0, 0, 10, 10), Area(20, 0, 30, 10), Area(-50, -50, -40, -40)
RNG = Random(0)
OFFER = Offer(service="s", accepted=True)
AGREED = replace(OFFER, provisioned=True)


def domain(nodes=2, *, area=HERE, measured=200, **options):
    made = Domain(
        "d", ["air"], [Node(areas=(area,), execution_s=0.1)] * nodes,
        DomainSettings(discipline=options.pop("discipline", QueueingDeadline()), **options),
    )  # fmt: skip
    rng = Random(1)
    for node in range(nodes):
        for _ in range(measured):
            seconds = rng.expovariate(10)
            made.windows.add(node, seconds)
            made.queues[node].paced.add(seconds)
    return made


def terms(**changes):
    of = {"service": "s", "capability": "air", "areas": (HERE,), "rate": 1.0, "percent": 99.0, "objective_s": 2.0}
    return Terms(**of | changes)


def ask(query="1", **changes):
    of = {"query": query, "service": "s", "areas": (HERE,), "percent": 99.0, "objective_s": 2.0}
    return Ask(**of | changes)


def offer_of(made, wanted):
    (sent,) = made.receive("p", Negotiate(terms=wanted), 0.0, RNG)
    return sent.message


def provisioned(*args, **options):
    made = domain(*args, **options)
    assert made.receive("p", Provision(terms=terms()), 0.0, RNG)[-1].message.accepted
    return made


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


def starts(found):
    return [one.subtask for one in found if isinstance(one, Start)]


def messages(found, kind):
    return [one.message for one in found if isinstance(one, To) and isinstance(one.message, kind)]


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


# --- a provider


def service(**changes):
    of = {"name": "s", "capability": "air", "areas": (HERE, THERE), "rate": 1.0, "percent": 99.0, "objective_s": 2.0}
    return Service(**of | changes)


def opened(domains=("a", "b"), **settings):
    made = Provider("p", ProviderSettings(**settings))
    made.open(service(), [(name, (HERE,) if name == "a" else (THERE,)) for name in domains], 0.0)
    for name in domains:
        (sent,) = made.receive(name, OFFER, 0.0, RNG)
        assert isinstance(sent.message, Provision)
        assert made.receive(name, AGREED, 0.0, RNG) == []
    return made


def asked(made, *args):
    """A query's messages, one for each domain."""
    (sent,) = made.query(*args)
    return [To(name, sent.message) for name in sent.names]


def results(found):
    return [one for one in found if isinstance(one, Result)]


def answer(query, **changes):
    of = {"query": query, "tally": Tally(count=1, total=4.0, least=4.0, most=4.0), "inside_s": 0.1, "late": False}
    return Answer(**of | changes)


def test_a_query_goes_to_the_domains_of_its_areas_and_is_aggregated():
    made = opened()
    sent = asked(made, "ticket", "s", (), 10.0)
    assert [one.name for one in sent] == ["a", "b"]
    assert sent[0].message.percent == pytest.approx(100 * 0.99**0.5)
    number = sent[0].message.query
    assert results(made.receive("a", answer(number), 10.2, RNG)) == []
    (result,) = results(made.receive("b", answer(number), 10.3, RNG))
    assert isinstance(result, Result) and result.answered == ("a", "b") and result.missing == ()
    assert result.tally.count == 2 and result.seconds == pytest.approx(0.3) and not result.late
    assert [one.name for one in asked(made, "t", "s", (THERE,), 11.0)] == ["b"]


def test_a_provider_learns_which_of_its_services_count_more():
    made = opened(("a",), learn=100)
    made.open(replace(service(), name="easy", weight=0.5), [("a", (HERE,))], 0.0)
    for message in (OFFER, AGREED):
        made.receive("a", replace(message, service="easy"), 0.0, RNG)
    weights = []
    for number in range(200):
        name = "easy" if number % 2 else "s"
        (sent,) = asked(made, number, name, (), float(number))
        weights.append(sent.message.weight)
        seconds = 2.5 if name == "s" and number % 10 == 0 else 0.1
        made.receive("a", answer(sent.message.query), number + seconds, RNG)
    assert set(weights[:100:2]) == {1.0} and set(weights[1:100:2]) == {0.5}
    round_ = {"s": Lateness(late=10, allowed=0.5), "easy": Lateness(late=0, allowed=0.5)}
    expected = learned({"s": 1.0, "easy": 0.5}, round_, number=1)["easy"]
    assert set(weights[100::2]) == {1.0} and weights[101::2] == pytest.approx([expected] * 50) and expected < 0.45


def test_a_subtask_has_the_weight_of_its_service():
    made = provisioned(1, discipline=Salvage())
    made.receive("p", ask("busy"), 0.0, RNG)
    for query, weight in (("light", 0.01), ("heavy", 1.0)):
        made.receive("p", ask(query, weight=weight), 0.0, RNG)
    (begun,) = starts(made.executed(0, ("p", "busy"), 0.1, 1.0, 0.1))
    assert begun.task[1] == "heavy" and begun.weight == 1.0


def test_delays_beside_the_domain_are_taken_off_the_budget():
    made = opened(("a",))
    (sent,) = asked(made, 0, "s", (), 0.0)
    told, _ = made.receive("a", answer(sent.message.query, inside_s=0.1), 0.15, RNG)
    assert told == To("a", Apart(seconds=pytest.approx(0.05)))
    at = provisioned(1)
    at.receive("p", told.message, 0.2, RNG)
    (begun,) = starts(at.receive("p", sent.message, 1.0, RNG))
    assert begun.due == pytest.approx(1.0 + 2.0 - 0.05)


def test_a_promise_counts_the_delays_beside_the_domain():
    made = domain()
    assert offer_of(made, terms()).accepted
    made.receive("p", Apart(seconds=1.9), 0.0, RNG)
    refused = offer_of(made, terms())
    assert not refused.accepted and refused.least_s > 1.9
    assert offer_of(made, terms(objective_s=refused.least_s * (1 + 1e-9))).accepted


def test_missing_answers_are_asked_for_once_more_and_then_named():
    made = opened(patience_s=1.0)
    number = asked(made, 0, "s", (), 0.0)[0].message.query
    made.receive("a", answer(number), 0.1, RNG)
    (again,) = made.tick(2.1, RNG)
    assert again.names == ("b",) and again.message.query == number
    assert made.tick(2.6, RNG) == []
    (result,) = made.tick(3.1, RNG)
    assert result.answered == ("a",) and result.missing == (("b", "it did not answer in time"),) and result.late
    assert results(made.receive("b", answer(number), 3.2, RNG)) == [] and made.counts.discarded == 1
    assert made.open_queries == 0


def test_answers_of_strangers_doubled_ones_and_garbage_do_no_harm():
    made = opened()
    number = asked(made, 0, "s", (), 0.0)[0].message.query
    assert made.receive("stranger", answer(number), 0.1, RNG) == []
    assert results(made.receive("a", answer(number), 0.1, RNG)) == []
    assert results(made.receive("a", answer(number), 0.1, RNG)) == []
    assert made.counts.discarded == 2
    bad = Tally(count=1, total=float("nan"), least=1.0, most=1.0)
    (result,) = results(made.receive("b", answer(number, tally=bad), 0.2, RNG))
    assert result.missing == (("b", "its answer makes no sense"),) and result.tally.total == 4.0


def test_a_domain_that_does_not_answer_is_left_out_and_asked_again():
    made = opened(patience_s=1.0, misses=2)
    for number in range(2):
        asked(made, 0, "s", (THERE,), 10.0 * number)
        made.tick(10.0 * number + 5, RNG)
    with pytest.raises(FieldError, match="outside every domain"):
        asked(made, 0, "s", (THERE,), 30.0)
    assert [one for one in made.tick(31.0, RNG) if one.name == "b" and isinstance(one.message, Negotiate)]
    for offer in (OFFER, AGREED):
        made.receive("b", offer, 31.0, RNG)
    assert asked(made, 0, "s", (THERE,), 32.0)


def test_terms_are_renewed_and_asked_again_where_they_were_refused():
    made = opened(("a",))
    assert made.tick(59.0, RNG) == []
    (renewed,) = made.tick(61.0, RNG)
    assert isinstance(renewed.message, Provision)
    (released,) = made.receive("a", Offer(service="s", accepted=False, why="full"), 61.1, RNG)
    assert isinstance(released.message, Release) and made.pools["s"].ready == ()
    assert made.tick(100.0, RNG) == []
    (again,) = made.tick(122.0, RNG)
    assert isinstance(again.message, Negotiate)


def test_a_domain_that_never_answers_is_written_to_more_and_more_seldom():
    made = Provider("p")
    made.open(service(), [("a", (HERE,))], 0.0)
    written = sum(len(made.tick(float(second), RNG)) for second in range(1, 3600))
    assert 55 < written < 70


def test_a_lost_provision_does_not_make_a_domain_ready():
    made = Provider("p")
    made.open(service(), [("a", (HERE,))], 0.0)
    made.receive("a", OFFER, 0.1, RNG)
    made.receive("a", OFFER, 0.2, RNG)  # of a repeated Negotiate
    assert made.pools["s"].ready == ()
    (again,) = made.tick(2.3, RNG)
    assert isinstance(again.message, Provision)
    made.receive("a", AGREED, 2.4, RNG)
    assert made.pools["s"].ready == ("a",)


def test_other_terms_reach_those_who_keep_the_old_ones_and_release_the_others():
    made = opened()
    sent = made.open(service(objective_s=3.0), [("a", (HERE,))], 5.0)
    assert [(one.name, type(one.message)) for one in sent] == [("b", Release), ("a", Provision)]
    assert made.pools["s"].ready == ("a",)


def test_a_pool_follows_the_registry():
    made = opened(("a",))
    (joined,) = made.follow("s", {"a": (THERE,), "b": (HERE,)}, 1.0)
    assert joined.name == "b" and isinstance(joined.message, Negotiate)
    assert made.pools["s"].members["a"].areas == (THERE,)
    assert made.follow("s", {}, 2.0) == []
    assert set(made.pools["s"].members) == {"a"}  # it still keeps its terms


def test_a_domain_that_has_started_anew_is_provisioned_again():
    made = opened()
    number = asked(made, 0, "s", (THERE,), 0.0)[0].message.query
    (result,) = results(
        made.receive("b", Refuse(query=number, service="s", why="unknown", provisioned=False), 0.1, RNG)
    )
    assert result.missing == (("b", "unknown"),)
    assert made.pools["s"].ready == ("a",)
    assert any(one.name == "b" for one in made.tick(3.0, RNG))


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"rate": -1.0}, "rate"),
        ({"percent": 100.0}, "percent"),
        ({"objective_s": 0.0}, "objective_s"),
        ({"areas": ()}, "areas"),
        ({"weight": 2.0}, "weight"),
    ],
)
def test_a_bad_service_is_named(changes, field):
    with pytest.raises(FieldError, match=field):
        service(**changes)


def test_queries_need_an_open_service_and_a_covered_area():
    made = opened()
    with pytest.raises(FieldError, match="open are: s"):
        asked(made, 0, "other", (), 0.0)
    with pytest.raises(FieldError, match="outside every domain"):
        asked(made, 0, "s", (NOWHERE,), 0.0)


def test_rounds_come_in_time_and_are_reported_if_the_trigger_holds():
    made = opened(("a",))
    many = Subscriptions(made)
    many.add(
        "t", Subscription(service="s", areas=(), period_s=1.0, rounds=3, trigger=Trigger(figure="mean", above=3.5)), 0.0
    )
    reported, now = [], 0.0
    while now < 6.0:
        for sent in many.tick(now):
            value = 3.0 if now < 1.0 else 4.0
            tally = Tally(count=1, total=value, least=value, most=value)
            (result,) = results(made.receive("a", answer(sent.message.query, tally=tally), now + 0.1, RNG))
            reported.append((result.ticket.number, many.report(result)))
        now += 0.5
    assert reported == [(0, False), (1, True), (2, True)] and len(many) == 0


def test_a_trigger_needs_a_bound_and_a_reading():
    with pytest.raises(FieldError, match="bound"):
        Trigger(figure="mean")
    assert not Trigger(figure="mean", above=1.0).holds(Tally())


# --- together


def test_queries_end_and_nothing_is_executed_twice_whatever_is_lost_or_doubled():
    results, rng = [], Random(5)
    play = Play(
        rng, Weather(lost=0.05, doubled=0.1, failed=0.02, stuck=0.005), lambda _, effect: results.append(effect)
    )
    provider = Provider("p", incarnation=1)
    for name, area in (("a", HERE), ("b", THERE)):
        play.add(Domain(
            name, ["air"], [Node(areas=(area,), execution_s=0.05)] * 3,
            DomainSettings(discipline=QueueingDeadline(), patience_s=1.0),
        ))  # fmt: skip
        for node in range(3):
            for _ in range(100):
                play.members[name].windows.add(node, rng.expovariate(20))
    play.add(provider)
    play.take("p", provider.open(service(), [("a", (HERE,)), ("b", (THERE,))], 0.0))
    play.run(10.0)
    assert provider.pools["s"].ready == ("a", "b")
    for number in range(500):
        play.take("p", provider.query(number, "s", (), play.now))
        play.run(play.now + rng.expovariate(1.0))
    play.run(play.now + 30)
    results = [one for one in results if isinstance(one, Result)]
    assert sorted(one.ticket for one in results) == list(range(500))
    assert set(play.executed.values()) == {1}
    assert provider.open_queries == 0 and all(play.members[name].open_tasks == 0 for name in "ab")
    assert sum(not one.missing and not one.failed for one in results) > 350
