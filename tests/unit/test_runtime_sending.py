"""When the switch of a handover is asked for: a receiver that has little left to take does so meanwhile."""

from __future__ import annotations

import threading

import pytest

from leeward.runtime.handover.pieces import PIECE_BYTES
from leeward.runtime.handover.sending import Sending
from leeward.runtime.pacing import Pacing

PACING = Pacing()


class Receiver:
    """Ways to one that takes pieces, as the test says: how many are left at each look."""

    epoch = 1

    def __init__(self, left):
        self.left, self.looks, self.pushed = list(left), 0, 0

    def push(self, target, pieces, stop):
        self.pushed += len(pieces)

    def untaken(self, target, stop):
        self.looks += 1
        return self.left.pop(0)

    def settle(self, stop):
        """All is taken."""

    def close(self):
        """Nothing is open."""


@pytest.mark.parametrize(
    ("pieces", "left", "looks"),
    [
        (200, [40, PACING.near_pieces + 1, PACING.near_pieces, 0], 3),  # two megabytes
        (50, [50, 11, 10, 0], 3),  # a fifth
        (20, [20, PACING.few_pieces + 1, PACING.few_pieces, 0], 3),
        (4, [4, 3, 0], 2),
        (1, [1, 0], 2),  # and if it has not begun, nothing is near
    ],
)
def test_the_switch_is_asked_for_when_a_receiver_has_little_left_to_take(pieces, left, looks):
    ways, seen = Receiver(left), []
    sending = Sending(ways, 1, "task 1")
    sending.put({3: bytes(pieces * PIECE_BYTES)})
    sending.when_nearly_taken(lambda: seen.append(ways.looks))
    sending.finish({})
    sending.run(threading.Event())
    assert ways.pushed == pieces and seen == [looks]
