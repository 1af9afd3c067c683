"""The scheme behind `leeward.state.store`: spread, and rebuilt from holders that forge, lack or lose fragments."""

from __future__ import annotations

import random

import pytest

from leeward.core.errors import ConfigError, SnapshotError
from leeward.core.options import read
from leeward.policies.agiledart.recovery.scheme import Fragments
from leeward.policies.agiledart.recovery.settings import FragmentSettings

STATE = random.Random(3).randbytes(2_000_000)
SPREAD = Fragments().spread(STATE, neighbours=8)
HOLDERS = [f"10.0.0.{number}:7" for number in range(6)]
HELD = {holder: b"".join(fragment) for holder, fragment in zip(HOLDERS, SPREAD.fragments, strict=True)}


def rebuilt(held, ranges=((0, len(STATE)),)):
    """Asks answered at once, by holder; None: it is away."""
    rebuilding = Fragments().rebuild(SPREAD.record(HOLDERS), ranges)
    asks, now, asked = list(rebuilding.begin(0.0)), 0.0, 0
    while asks:
        ask, now, asked = asks.pop(0), now + 0.001, asked + 1
        kept = held[ask.holder]
        if kept is None:
            asks += rebuilding.gone(ask.holder, now)
        else:
            asks += rebuilding.received(ask, kept[ask.begin : ask.begin + ask.length], now)
    assert rebuilding.over
    return rebuilding.state(), asked


def with_(**changes):
    return {**HELD, **{HOLDERS[int(name[1:])]: value for name, value in changes.items()}}


def test_k_failures_are_survived_and_k_plus_1_are_a_loss():
    assert rebuilt(HELD)[0] == STATE
    assert rebuilt(with_(h1=None, h4=None))[0] == STATE
    with pytest.raises(SnapshotError, match="is lost: 3 of its blocks can be had, 4 are needed"):
        rebuilt(with_(h1=None, h4=None, h0=None))


def test_forged_fragments_count_as_failures_and_never_as_state():
    forged = bytes(len(HELD[HOLDERS[2]]))
    assert rebuilt(with_(h2=forged))[0] == STATE
    assert rebuilt(with_(h2=forged, h0=None))[0] == STATE
    with pytest.raises(SnapshotError, match="fail their checksums"):
        rebuilt(with_(h2=forged, h0=forged, h5=forged))


def test_fragments_of_another_epoch_count_as_failures():
    older = Fragments().spread(STATE[::-1], neighbours=8)
    old = {number: b"".join(older.fragments[number]) for number in range(6)}
    assert rebuilt(with_(h0=old[0], h3=old[3]))[0] == STATE
    with pytest.raises(SnapshotError, match="fail their checksums"):
        rebuilt(with_(h0=old[0], h3=old[3], h5=old[5]))


def test_holders_may_swap_no_fragments():
    """Both are right ones of this state, at the wrong place."""
    swapped = with_(h0=HELD[HOLDERS[1]], h1=HELD[HOLDERS[0]])
    assert rebuilt(swapped)[0] == STATE


def test_a_part_of_the_state_asks_for_its_stripes_alone():
    state, asked = rebuilt(HELD, [(500_000, 100), (1_500_000, 10)])
    for begin, end in ((500_000, 500_100), (1_500_000, 1_500_010)):
        assert state[begin:end] == STATE[begin:end]
    assert asked < 20 < rebuilt(HELD)[1]


def test_more_fragments_than_neighbours_are_refused():
    with pytest.raises(ConfigError, match="m = 4 and k = 2: 6 fragments need as many neighbours, and there are 5"):
        Fragments().spread(STATE, neighbours=5)


def test_m_k_and_the_period_follow_from_the_service_level():
    settings = read(FragmentSettings, {"recover_s": 4.0, "uplink": 1.0, "upload": 100.0, "download": 50.0})
    (few, often), (many, oftener) = (Fragments(settings).layout(size, 10) for size in (100_000, 12_000_000))
    assert many.m > few.m and many.n <= 10
    assert often > oftener > 0, "more state takes longer to rebuild, which leaves less for the input since then"
    assert Fragments(settings).spread(bytes(100_000), neighbours=10).period_s == often


def test_a_service_level_that_cannot_be_kept_leaves_m_and_k_as_given():
    settings = read(FragmentSettings, {"recover_s": 0.1, "m": 3, "k": 1})
    layout, period_s = Fragments(settings).layout(10**9, 10)
    assert (layout.m, layout.k, period_s) == (3, 1, 0.0)
    assert Fragments().layout(10**6, 10)[1] == 0.0, "nothing was promised"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"m": 0}, "'leeward.state.options.m' is 0"),
        ({"k": -1}, "'leeward.state.options.k' is -1"),
        ({"parity": 2}, "unknown setting 'leeward.state.options.parity'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        read(FragmentSettings, values, where="leeward.state.options.")
