"""A service that is short of the processor looks at the metrics less often, and still plans."""

from __future__ import annotations

import pytest

from leeward.control import measuring
from leeward.control.lines import read_samples
from leeward.control.term import until_next_look
from leeward.core.settings import Settings
from tests.helpers.control_figures import RATE, Figures
from tests.helpers.control_stage import Script, keep, stage
from tests.helpers.control_twins import ID, Cluster


@pytest.mark.parametrize(("took", "wait"), [(0.0, 1.0), (0.2, 1.0), (0.5, 2.5), (1.0, 5.0), (30.0, 5.0)])
def test_the_wait_for_the_next_look(took, wait):
    assert until_next_look(took) == wait


@pytest.mark.parametrize(("takes", "most", "least"), [(0.01, 62, 50), (0.5, 26, 18)])
def test_looks_that_take_long_are_fewer_and_rates_are_right(takes, most, least, monkeypatch):
    policy, looks = Script(keep), []
    cluster = Cluster()
    cluster.world.metrics[ID] = Figures(cluster)

    def slowly(lines):
        looks.append(cluster.clock.time)
        cluster.clock.time += takes
        return read_samples(lines)

    monkeypatch.setattr(measuring, "read_samples", slowly)
    service, clock, _, cluster = stage(
        policy, cluster=cluster, limit=40_000, until=lambda _, cluster: cluster.clock.time > 1060.0,
        settings=Settings(period_s=5.0, cool_down_s=0.0, window_s=10.0),
    )  # fmt: skip
    service.run(clock.stop)
    assert least <= len(looks) <= most
    assert len(policy.views) >= 9
    assert [view.measured["source"].arrival_rate for view in policy.views] == pytest.approx(
        [RATE] * len(policy.views), rel=0.1
    )
