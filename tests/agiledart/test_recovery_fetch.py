"""The fetch: on any order of answers, forgeries, silences and deaths it rebuilds whatever can be rebuilt."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leeward.core.errors import SnapshotError
from leeward.policies.agiledart.recovery.fetch import Block, Fetch, Patience

UNIT = 1000


class Fetching(RuleBasedStateMachine):
    """Holders answer, forge, fall silent and die in any order; the network keeps what was asked for."""

    @initialize(m=st.integers(1, 4), k=st.integers(0, 3), stripes=st.integers(0, 12))
    def begin(self, m, k, stripes):
        self.m, self.stripes, self.now = m, stripes, 0.0
        self.fetch = Fetch(m, dict.fromkeys(range(stripes), UNIT), range(m + k), Patience(lost_s=1e9))
        self.there, self.pending, self.asked = set(range(m + k)), [], set()
        self.good: dict[int, set[int]] = {stripe: set() for stripe in range(stripes)}
        self.bad: dict[int, set[int]] = {stripe: set() for stripe in range(stripes)}
        self.lost = False
        self.told(lambda: self.fetch.begin(self.now))

    def told(self, event):
        try:
            asks = event()
        except SnapshotError:
            self.lost = True
            assert self.is_lost(), "a loss was reported that is none"
            return
        assert not self.is_lost(), "a loss was not reported"
        for block in asks:
            assert block.fragment in self.there and block not in self.asked
            self.asked.add(block)
            self.pending.append(block)

    def is_lost(self):
        return any(len(self.good[s] | (self.there - self.bad[s])) < self.m for s in self.good if not self.whole(s))

    def whole(self, stripe):
        return len(self.good[stripe]) >= self.m

    @property
    def working(self):
        return not self.lost and not self.fetch.over

    @precondition(lambda self: self.working and self.pending)
    @rule(pick=st.integers(0, 1000), good=st.booleans(), after=st.floats(0, 2))
    def answer(self, pick, good, after):
        self.now += after
        block = self.pending.pop(pick % len(self.pending))
        if not self.whole(block.stripe) and block.fragment in self.there:
            (self.good if good else self.bad)[block.stripe].add(block.fragment)
        elif not good:
            self.bad[block.stripe].add(block.fragment)
        self.told(lambda: self.fetch.arrived(block, good, self.now))

    @precondition(lambda self: self.working and self.there)
    @rule(pick=st.integers(0, 1000))
    def die(self, pick):
        index = sorted(self.there)[pick % len(self.there)]
        self.there.discard(index)
        self.pending = [block for block in self.pending if block.fragment != index]
        self.told(lambda: self.fetch.gone(index, self.now))

    @precondition(lambda self: self.working)
    @rule(after=st.floats(0, 5))
    def wait(self, after):
        self.now += after
        self.told(lambda: self.fetch.tick(self.now))

    @precondition(lambda self: not self.working)
    @rule()
    def rest(self):
        """Nothing is left to happen."""

    @invariant()
    def it_is_over_when_every_stripe_is_whole(self):
        if hasattr(self, "fetch") and not self.lost:
            assert self.fetch.over == all(map(self.whole, self.good))

    @invariant()
    def while_it_is_not_over_some_answer_is_awaited(self):
        if hasattr(self, "fetch") and self.working:
            assert self.pending

    def teardown(self):
        """Everybody answers rightly from now on: it comes to its end."""
        if not hasattr(self, "fetch"):
            return
        for _ in range(10_000):
            if not self.working:
                return
            self.answer(0, True, 0.1)
        raise AssertionError("it does not end")


Fetching.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestFetching = Fetching.TestCase


def played(fetch: Fetch, rates: dict[int, float], dead: dict[int, float] | None = None) -> tuple[float, list[Block]]:
    """Holders of these rates (bytes/s), and when some stop to answer; the time until it is over, and all asks."""
    free, events, asks, number = dict.fromkeys(rates, 0.0), [], [], 0

    def send(blocks, now):
        nonlocal number
        for block in blocks:
            asks.append(block)
            free[block.fragment] = max(free[block.fragment], now) + UNIT / rates[block.fragment]
            if free[block.fragment] < (dead or {}).get(block.fragment, 1e9):
                heapq.heappush(events, (free[block.fragment], number := number + 1, block))

    send(fetch.begin(0.0), 0.0)
    tick = 0.0
    while not fetch.over:
        if events and events[0][0] <= tick:
            now, _, block = heapq.heappop(events)
            send(fetch.arrived(block, True, now), now)
        else:
            tick += 0.05
            send(fetch.tick(tick), tick)
    return now, asks


def fetch_of(m: int, n: int, stripes: int) -> Fetch:
    return Fetch(m, dict.fromkeys(range(stripes), UNIT), range(n))


@pytest.mark.parametrize(
    "rates", [(10, 10, 10, 10, 10, 10), (20, 10, 8, 6.4, 6, 6), (40, 10, 10, 1, 1, 1), (9, 9, 9, 9, 0.1, 0.1)]
)
def test_uneven_holders_are_used_up_to_what_their_uplinks_carry(rates):
    """Within 6 % of the least time t with sum of min(r t, S / m) = S."""
    kilo = {index: rate * 1000 for index, rate in enumerate(rates)}
    seconds, asks = played(fetch_of(4, 6, 200), kilo)
    low, high = 0.0, 1e6
    for _ in range(100):
        t = (low + high) / 2
        low, high = (low, t) if sum(min(r * t, 200 * UNIT) for r in kilo.values()) >= 800 * UNIT else (t, high)
    assert seconds <= 1.06 * high
    assert len(asks) <= 1.03 * 800


def test_an_even_fetch_asks_for_no_block_too_many():
    _, asks = played(fetch_of(4, 6, 200), dict.fromkeys(range(6), 1e6))
    assert len(asks) == 800


def test_a_holder_that_stops_to_answer_costs_little():
    rates = dict.fromkeys(range(6), 100_000.0)
    whole, _ = played(fetch_of(4, 6, 400), rates)
    stalled, _ = played(fetch_of(4, 6, 400), rates, dead={0: 0.5, 3: 1.0})
    assert stalled < whole * 6 / 4 + 0.8


def test_a_forger_is_asked_only_where_no_other_can_help():
    fetch = fetch_of(2, 3, 50)
    asks, forged = list(fetch.begin(0.0)), 0
    now = 0.0
    while asks:
        block, now = asks.pop(0), now + 0.01
        forged += block.fragment == 1
        asks += fetch.arrived(block, block.fragment != 1, now)
    assert fetch.over and forged <= 2


def test_one_failure_more_than_k_is_reported_with_what_is_left():
    fetch = fetch_of(4, 6, 3)
    fetch.begin(0.0)
    fetch.gone(0, 0.1)
    fetch.gone(5, 0.1)
    with pytest.raises(SnapshotError, match=r"stripe 0 is lost: 3 of its blocks can be had, 4 are needed"):
        fetch.gone(2, 0.2)


def test_too_few_holders_at_the_start_are_reported():
    with pytest.raises(SnapshotError, match="stripe 0 is lost"):
        Fetch(4, {0: UNIT}, [0, 1, 5]).begin(0.0)


def test_forged_blocks_of_k_plus_1_holders_are_a_loss():
    fetch = fetch_of(2, 3, 1)
    first, _ = fetch.begin(0.0)
    (third,) = fetch.arrived(first, False, 0.1)
    with pytest.raises(SnapshotError, match="fail their checksums"):
        fetch.arrived(third, False, 0.2)


def test_holders_silent_for_too_long_are_lost():
    fetch = fetch_of(2, 2, 1)
    fetch.begin(0.0)
    fetch.tick(9.9)
    with pytest.raises(SnapshotError, match="lost"):
        fetch.tick(10.0)


def test_nothing_wanted_is_over_at_once():
    fetch = fetch_of(2, 3, 0)
    assert fetch.begin(0.0) == [] and fetch.over
