"""The thresholds of Python's search for cycles are those of before once a run is over, also if it failed."""

from __future__ import annotations

import gc

import pytest

from leeward.core.collecting import COLLECT_AFTER, seldom_collected


def test_thresholds_come_back():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="failed"), seldom_collected():
        assert gc.get_threshold() == COLLECT_AFTER != before
        raise ValueError("failed")
    assert gc.get_threshold() == before
