"""Providers by hand, and with domains in virtual time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from leeward.core.fields import FieldError
from leeward.core.members import To
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node
from leeward.policies.dssp.agents.messages import Answer, Apart, Negotiate, Offer, Provision, Refuse, Release, Tally
from leeward.policies.dssp.agents.play import Play, Weather
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings, Result
from leeward.policies.dssp.agents.subscriptions import Subscription, Subscriptions, Trigger
from leeward.policies.dssp.disciplines import QueueingDeadline, Salvage
from leeward.policies.dssp.model.weights import Lateness, learned
from tests.helpers.dssp_agents import (
    AGREED,
    HERE,
    NOWHERE,
    OFFER,
    RNG,
    THERE,
    ask,
    domain,
    offer_of,
    provisioned,
    service,
    starts,
    terms,
)


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
