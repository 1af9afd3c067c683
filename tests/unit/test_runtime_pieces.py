"""Pieces of a handover: what they cost besides what is in them."""

from __future__ import annotations

import gc

import msgpack
import pytest

from leeward.core.errors import SnapshotError
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
    arrived = [assembly.take(piece) for piece in Cutter(epoch=3, sender=1, size=50).add(taken(packer), end=True)]
    assert len(arrived) > 100 and arrived[-1] == {0: entries} and len(made) == 1


def test_keys_of_several_fields_arrive_as_they_left_and_so_do_those_that_are_gone():
    packer = msgpack.Packer(strict_types=True, autoreset=False)
    pack(packer, 0, {("a", 1): [1], ("a", 2): 2, "a": 3}.items(), (), last=False, owner="a test")
    pack(packer, 0, {("b", 1): 4}.items(), [("a", 2)], last=True, owner="a test")
    assembly = Assembly(3)
    (arrived,) = [assembly.take(piece) for piece in Cutter(epoch=3, sender=1).add(taken(packer), end=True)]
    assert arrived == {0: {("a", 1): [1], "a": 3, ("b", 1): 4}}


def test_a_value_that_cannot_travel_is_named_beside_a_key_of_several_fields():
    packer = msgpack.Packer(strict_types=True, autoreset=False)
    with pytest.raises(SnapshotError, match=r"key \('a', 1\): .*type tuple"):
        pack(packer, 0, {("a", 1): (1, 2)}.items(), (), last=True, owner="a test")
