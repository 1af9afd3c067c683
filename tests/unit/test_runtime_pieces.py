"""Pieces of a handover: what they cost besides what is in them."""

from __future__ import annotations

import gc

import msgpack
import pytest

from leeward.runtime.handover import pieces
from leeward.runtime.handover.pieces import Assembly, Cutter, pack, taken


@pytest.fixture
def without_collector():
    """As in a task that receives."""
    gc.disable()
    yield
    gc.enable()


def test_a_sender_is_one_reader_however_many_its_pieces(without_collector, monkeypatch):
    """A reader holds a megabyte of room, and itself: in a receiving task, which collects no cycles, for ever."""
    made = []
    monkeypatch.setattr(pieces, "_Sender", lambda of=pieces._Sender: made.append(of()) or made[-1])
    packer = msgpack.Packer(strict_types=True, autoreset=False)
    assembly, entries = Assembly(3), {n: "x" * n for n in range(100)}
    pack(packer, 0, entries.items(), (), last=True, owner="a test")
    arrived = [
        assembly.take(piece) for piece in Cutter(epoch=3, sender=1, size=50).add(taken(packer), end=True)
    ]
    assert len(arrived) > 100 and arrived[-1] == {0: entries} and len(made) == 1
