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
