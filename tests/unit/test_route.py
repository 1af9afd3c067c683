"""A sender with a router, in virtual time: its choices become weights, and it is told delays and silences."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest

from leeward.core.errors import ProtocolError
from leeward.core.policy import PathRouter
from leeward.core.route import Route, RoutePacing, Turn
from leeward.core.table import even_table
from leeward.policies.agiledart.paths.routers import KlRouter, NextHopRouter, ThompsonRouter

TABLE = even_table([3, 5, 7])


class Fixed:
    """Chooses in turn from a list; keeps what it is told."""

    def __init__(self, *choices):
        self.choices, self.asked, self.learnt = itertools.cycle(choices), 0, []

    def next_hop(self, hops, *, now, rng):
        self.asked += 1
        return next(self.choices)

    def learn(self, hop, delay_s):
        self.learnt.append((hop, round(delay_s, 9)))


def route(router, table=TABLE, **pacing):
    made = Route(router, Random(1), RoutePacing(**pacing))
    made.follow(table)
    return made


def meet(made, tasks=(3, 5, 7), number=1):
    """The first turn, and an answer of each replica."""
    assert made.turn(number, 0.0) == Turn(None, tuple(tasks))
    for task in tasks:
        assert made.answered(task, number, 0.01, service_s=0.002)


def test_until_each_replica_has_answered_tuples_rotate_and_all_are_asked():
    router = Fixed(5)
    made = route(router)
    assert made.turn(1, 0.0) == Turn(None, (3, 5, 7))
    assert made.answered(3, 1, 0.01, service_s=0.002) and made.answered(7, 1, 0.5, service_s=0.0)
    assert router.learnt == [(3, 0.012), (7, 0.5)]
    assert made.turn(2, 0.5) == Turn(None, (3, 7))  # 5 has not answered, and is not asked twice
    assert made.answered(5, 1, 0.6, service_s=0.0)
    assert made.turn(3, 0.7).weights == {3: 0, 5: 2 * 32, 7: 0}


def test_weights_are_the_choices_of_the_last_turns():
    made = route(Fixed(3, 3, 5, 7), choices=4, turns=2)
    meet(made)
    assert made.turn(2, 0.25) == Turn({3: 4, 5: 2, 7: 2}, (3, 5, 7))
    made.router.choices = itertools.repeat(7)
    assert made.turn(3, 0.5).weights == {3: 2, 5: 1, 7: 5}
    assert made.turn(4, 0.75).weights == {3: 0, 5: 0, 7: 8}
    assert made.turn(5, 1.0).weights is None  # as before


def test_a_replica_without_tuples_gets_no_sample():
    made = route(Fixed(3, 5))
    meet(made)
    assert made.turn(2, 0.25).samples == (3, 5)


def test_a_silent_replica_counts_as_one_that_took_all_the_patience():
    router = Fixed(3, 5, 7)
    made = route(router, patience_s=1.0)
    made.turn(1, 0.0)
    made.answered(3, 1, 0.01, service_s=0.0)
    assert made.turn(2, 0.99).samples == (3,)
    assert router.learnt == [(3, 0.01)]
    assert made.turn(3, 1.0).samples == (5, 7)  # asked again
    assert router.learnt == [(3, 0.01), (5, 1.0), (7, 1.0)]
    assert not made.answered(5, 1, 1.2, service_s=0.0), "its late answer counts no more"
    assert made.answered(5, 3, 1.2, service_s=0.0)


def test_silence_shows_without_tuples_too_but_not_behind_a_pause():
    router = Fixed(3, 5, 7)
    made = route(router)
    made.turn(1, 0.0)
    assert made.turn(2, 2.0, busy=False) == Turn()
    assert router.learnt == [(3, 1.0), (5, 1.0), (7, 1.0)]
    made.turn(3, 2.25)
    made.rest()
    made.turn(4, 9.0)
    assert len(router.learnt) == 3


def test_a_new_table_makes_weights_start_anew_and_keeps_what_was_learnt():
    router = Fixed(3)
    made = route(router)
    meet(made)
    made.turn(2, 0.25)
    made.follow(even_table([3, 9]))
    assert made.weights == {}
    assert made.turn(3, 0.5) == Turn(None, (9,))  # the sample to 3 is under way; nothing is known of 9
    assert not made.answered(5, 2, 0.6, service_s=0.0), "no replica any more"
    assert made.answered(9, 3, 0.6, service_s=0.0)
    assert made.turn(4, 0.75).weights == {3: 64, 9: 0}


def test_one_replica_needs_no_router():
    router = Fixed(9)
    made = route(router, even_table([3]))
    assert made.turn(1, 0.0) == Turn()
    assert router.asked == 0


def test_samples_go_round_where_there_are_many_replicas():
    made = route(Fixed(*range(1, 41)), even_table(range(1, 41)), samples=16)
    asked = []
    for number in range(1, 6):
        samples = made.turn(number, number / 4).samples
        assert len(samples) == 16
        asked += samples
        for task in samples:
            made.answered(task, number, number / 4, service_s=0.0)
    assert set(asked[:48]) == set(range(1, 41)) and max(Counter(asked[:64]).values()) == 2


def test_a_router_that_chooses_no_replica_is_refused():
    with pytest.raises(ProtocolError, match=r"Fixed.next_hop chose task 4, which is none of \(3, 5, 7\)"):
        route(Fixed(4)).turn(1, 0.0)


def test_a_steady_router_is_asked_once():
    router = Fixed(5)
    router.steady = True
    made = route(router)
    meet(made)
    assert router.asked == 1
    assert made.turn(2, 0.25).weights == {3: 0, 5: 64, 7: 0}
    assert KlRouter.steady and not hasattr(ThompsonRouter, "steady")


def test_a_hop_far_from_the_sink_is_avoided_though_its_link_is_fast():
    router = ThompsonRouter(slot_s=0.01)
    assert isinstance(router, PathRouter) and not isinstance(NextHopRouter(), PathRouter)
    made, now = route(router, even_table([3, 5])), 0.0
    for number in range(1, 40):
        for task in made.turn(number, now).samples:
            made.answered(task, number, now + (0.01 if task == 3 else 0.02), service_s=0.0, ahead_s=0.5 * (task == 3))
        now += 0.25
    assert made.weights[5] > 0.8 * sum(made.weights.values())
    assert 0 < made.ahead_s(now) < 0.1
    assert route(NextHopRouter()).ahead_s(0.0) == 0.0
