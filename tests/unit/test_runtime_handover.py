"""How much of a task's own time copying ahead takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from leeward.core.instructions import CopyAhead
from leeward.runtime.handover import handovers as handover
from leeward.runtime.handover.handovers import Handovers
from leeward.runtime.pacing import Pacing
from leeward.runtime.state.keyed import KeyedState

PACING = Pacing()


class Loop:
    """A task's own loop, which looks at the copy every so often; a step takes what it may."""

    def __init__(self, monkeypatch):
        self.now_s, self.packed_s = 100.0, 0.0
        self.sending = SimpleNamespace(epoch=1, has_room=True, put=lambda parts: None, reach=lambda targets: None)
        monkeypatch.setattr(handover, "Ahead", lambda *_: SimpleNamespace(step=self.pack, small=False, near=False))
        shell = SimpleNamespace(
            component_name="count",
            task_id=5,
            state=KeyedState("test"),
            pace=lambda seconds: None,
        )
        courier = SimpleNamespace(cancel=lambda: None, send=lambda *_: self.sending)
        around = SimpleNamespace(clock=lambda: self.now_s)
        self.handovers = Handovers(SimpleNamespace(shell=shell), courier, around)
        self.handovers.copy_ahead(CopyAhead(1, gained={}, lost={0: 6}))

    def pack(self, budget_s, clock):
        self.now_s += budget_s
        self.packed_s += budget_s
        return {6: b"some"}

    def share(self, seconds, every_s):
        """Of the time that copying took, while the loop looks at it every so often."""
        began_s, before_s = self.now_s, self.packed_s
        while self.now_s < began_s + seconds:
            self.handovers.step()
            self.now_s += every_s
        return (self.packed_s - before_s) / (self.now_s - began_s)


@pytest.mark.parametrize("rests", [0.02, 0.3, 0.7, 1.0])
def test_copying_gets_its_share_however_often_the_loop_comes_by(monkeypatch, rests):
    """Each rest that became too long shortens the next one."""
    every_s = rests * PACING.rest_s
    assert Loop(monkeypatch).share(1.0, every_s) == pytest.approx(PACING.share, abs=0.03)


def test_a_long_wait_for_room_is_not_made_good_at_once(monkeypatch):
    loop = Loop(monkeypatch)
    loop.sending.has_room = False
    assert loop.share(1.0, 0.0001) == 0
    loop.sending.has_room = True
    assert loop.share(0.02, 0.0001) < PACING.share + 0.06
