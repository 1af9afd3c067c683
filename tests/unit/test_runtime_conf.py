"""Settings of a topology that make no sense are named, with what to give instead."""

from __future__ import annotations

import pytest

from leeward.core.errors import ConfigError
from leeward.runtime.task.conf import direct, redis_url, service_time


def test_state_goes_straight_unless_it_is_told_not_to():
    assert direct({}) and direct({"leeward.handover.direct": True})
    assert not direct({"leeward.handover.direct": False})


@pytest.mark.parametrize(
    ("read", "conf", "says"),
    [
        (direct, {"leeward.handover.direct": "no"}, "leeward.handover.direct is 'no'"),
        (redis_url, {}, "leeward.redis.url is None"),
        (service_time, {"leeward.service_times": "emulated"}, "no leeward.service_rate"),
    ],
)
def test_nonsense_is_named(read, conf, says):
    with pytest.raises(ConfigError, match=says):
        read(conf)


RATES = {"leeward.service_times": "emulated", "leeward.service_rate": {"edge": 50, "cloud": 200.0}}


def test_an_emulated_time_follows_from_class_and_speed_of_the_node():
    def time_on(**meta):
        return service_time({**RATES, "supervisor.scheduler.meta": meta})

    def time_with(speed):
        meta = {"class": "edge"}
        return service_time({**RATES, "leeward.service_speed": speed, "supervisor.scheduler.meta": meta})

    assert time_on(**{"class": "edge"}) == pytest.approx(0.02)
    assert time_on(**{"class": "cloud", "speed": "0.1"}) == pytest.approx(0.05)
    assert time_on(**{"class": "edge"}) * 2 == time_with(0.5) == pytest.approx(0.04)
    assert service_time({**RATES, "leeward.service_rate": 4}) == 0.25
    for meta in ({}, {"class": "fog"}):
        with pytest.raises(ConfigError, match="names the class"):
            time_on(**meta)
    with pytest.raises(ConfigError, match="names the class None"):
        service_time(RATES)
