"""The model of recovery, and the choice of m, k and period from state size and service level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.recovery.tuning import (
    Facts,
    Wish,
    loss,
    papers_s,
    rebuild_s,
    striped_s,
    tune,
    whole_fragments_s,
)

MB = 1e6
FACTS = Facts(uplinks=(10 * MB,) * 12, download=60 * MB, upload=20 * MB, failures=1 / 86_400)


@given(
    uplinks=st.lists(st.floats(0.1, 100), min_size=1, max_size=12), data=st.data(), size=st.floats(1, 1000),
)  # fmt: skip
def test_striped_time_is_the_least_in_which_no_holder_gives_more_than_its_fragment(uplinks, data, size):
    m = data.draw(st.integers(1, len(uplinks)))
    t = striped_s(size, m, uplinks, download=1e9)
    assert sum(min(rate * t, size / m) for rate in uplinks) == pytest.approx(size, rel=1e-6)
    assert sum(min(rate * t * 0.999, size / m) for rate in uplinks) < size
    assert t <= whole_fragments_s(size, m, sorted(uplinks, reverse=True), 1e9) * (1 + 1e-9)


def test_the_download_bounds_a_rebuild():
    assert striped_s(60 * MB, 4, (50 * MB,) * 6, 10 * MB) == pytest.approx(6.0)


def test_fewer_holders_than_m_are_refused():
    with pytest.raises(ValueError, match="3 holders cannot give 4 blocks"):
        striped_s(1.0, 4, (1.0,) * 3, 1.0)


def test_the_papers_model_falls_with_m_at_a_fixed_state():
    assert papers_s(100 * MB, 8, 2, 10 * MB) < papers_s(100 * MB, 4, 2, 10 * MB) == pytest.approx(2.0)


def test_ours_counts_set_up_and_decoding():
    assert rebuild_s(600 * MB, 4, 2, FACTS) == pytest.approx(0.05 + 10.0 + 1.2 / 256)
    slow = Facts(uplinks=FACTS.uplinks, download=60 * MB, upload=20 * MB, failures=0.0, coding=30 * MB)
    assert rebuild_s(600 * MB, 4, 2, slow) > 20.0


def test_loss_is_the_tail_of_a_binomial():
    assert loss(1, 0, 1e9, 1.0) == pytest.approx(1.0)
    assert loss(1, 1, 100.0, 1e-4) == pytest.approx(1e-4, rel=0.02)  # both of two fail: (1 - e^-0.01)^2
    assert loss(4, 2, 0.0, 1.0) == 0.0


def test_a_tighter_service_level_checkpoints_more_often():
    loose, tight = (tune(50 * MB, FACTS, Wish(recover_s=seconds)) for seconds in (600.0, 60.0))
    assert tight.period_s < loose.period_s
    assert tight.rebuild_s + 0.5 * tight.period_s <= 60.0 * (1 + 1e-9)
    assert loose.loss <= 1e-6 >= tight.loss


def test_larger_states_are_cut_into_more_fragments():
    """One holder's uplink is enough for little state, not for much."""
    wish = Wish(recover_s=20.0, share=0.5)
    assert tune(0.1 * MB, FACTS, wish).m <= tune(40 * MB, FACTS, wish).m
    big = tune(40 * MB, FACTS, wish)
    assert big.m + big.k <= 12 and big.k >= 1


def test_rarer_losses_need_more_parity():
    def parity(chance: float) -> float:
        choice = tune(50 * MB, FACTS, Wish(recover_s=300.0, loss=chance))
        return choice.k / choice.m

    assert parity(1e-12) > parity(1e-3)


@pytest.mark.parametrize(
    ("size", "wish"), [(1000 * MB, Wish(recover_s=5.0)), (50 * MB, Wish(recover_s=60.0, loss=0.0))]
)
def test_a_service_level_that_cannot_be_kept_is_refused_with_the_best_there_is(size, wish):
    with pytest.raises(LeewardError, match=r"recover_s = .* cannot be kept: 12 neighbours"):
        tune(size, FACTS, wish)


def test_without_neighbours_nothing_can_be_kept():
    alone = Facts(uplinks=(), download=MB, upload=MB, failures=0.0)
    with pytest.raises(LeewardError, match="0 neighbours"):
        tune(MB, alone, Wish(recover_s=60.0))
