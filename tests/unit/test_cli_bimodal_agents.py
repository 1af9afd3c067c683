"""Reservations after the end of `leeward experiment bimodal-agents`: agents get the time of a lease to free them."""

from __future__ import annotations

import asyncio

import pytest

from leeward.cli import _bimodal_agents as run


@pytest.mark.parametrize(
    ("answers", "seconds", "left"),
    [
        pytest.param([[3, 4], [4], []], 60.0, [], id="freed meanwhile"),
        pytest.param([[]], 60.0, [], id="free at once"),
        pytest.param([[3], [3], [3]], 0.0, [3], id="kept"),
    ],
)
def test_left_after(answers, seconds, left, monkeypatch):
    async def holding(agents, key):
        return answers.pop(0)

    monkeypatch.setattr(run, "holding", holding)
    monkeypatch.setattr(run, "SETTLE_S", 0.0)
    assert asyncio.run(run.left_after(None, b"", seconds)) == left
