"""A queue changes the order between two markers alone, whatever comes on which channel and however it is cut."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leeward.core.control import ControlRecord
from leeward.core.instructions import Deliver, DeliverPulse, Kind, Marker
from leeward.core.keys import key_group
from leeward.core.protocol import TaskProtocol
from leeward.core.table import even_table
from leeward.policies.dssp.disciplines import EarliestDeadline
from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import DEFINE_CHANNEL
from leeward.runtime.pipe.loop import Loop, Meter
from leeward.runtime.pipe.ordered_loop import OrderedLoop
from leeward.runtime.pipe.waiting import Queue, Waiting, line_of

TASK, SENDERS, KEYS = 9, (1, 2, 3), "abc"
TABLES = {"source": even_table(SENDERS), "bolt": even_table([TASK])}


class Drained(Exception):
    """The input is over, and nothing waits."""


class Pipe:
    """Pieces of input; `at_hand` has the next one, or nothing yet."""

    pacing, flushed_at, taken, blocks = Pacing(), float("inf"), 0, 0

    class form:
        ids = False

    def __init__(self, pieces):
        self._pieces = list(pieces)

    def batch(self):
        while self._pieces:
            if piece := self._pieces.pop(0):
                return piece
        raise Drained

    def at_hand(self):
        return self._pieces.pop(0) if self._pieces else []


class Bolt:
    """Hands all to a protocol, and keeps what that delivers: (key, number), or the number of a pulse."""

    def __init__(self):
        self.protocol = TaskProtocol(TASK, SENDERS, component="bolt", group_of=lambda item: item[0])
        self.protocol.on_record(ControlRecord(tables=TABLES), first=True)
        self.done = []
        self.in_turn = iter

    def attend(self): ...

    def fields(self, component, stream):
        return None

    def process(self, tup):
        self.done.append(tup.values[:2])

    process_and_ack = process

    def control(self, tup):
        self._carry_out(self.protocol.on_marker(tup.task, tup.values[0]))

    def pass_on(self, tup, group, waiting=None):
        self._carry_out(self.protocol.on_tuple(tup.task, (group, waiting or tup)))

    def _carry_out(self, instructions):
        for instruction in self.in_turn(instructions):
            if isinstance(instruction, Deliver):
                tup = instruction.item[1]
                self.process(tup.checked() if isinstance(tup, Waiting) else tup)
            elif isinstance(instruction, DeliverPulse):
                self.done.append(instruction.number)


class Copier:
    copying = False


def run(pieces, *, most=0):
    """The deeds of a bolt: with a queue of `most` tuples by deadline, or without one."""
    pipe, bolt = Pipe(pieces), Bolt()
    parts = pipe, bolt.protocol, bolt, Meter()
    options = {"inbox": (), "copier": Copier, "state": None, "load": None, "plain": False}
    if most:
        line = line_of(stateful=True, keyed=True, told=True)
        queue = Queue(
            EarliestDeadline(), {"due": "due"}, component="bolt", most=most, line=line, mean_s=lambda: 1.0
        )  # fmt: skip
        queue._places[tuple] = [("due", 2)]  # position of the field, as the plain tuples here have no names
        loop = OrderedLoop(*parts, queue=queue, wall=lambda: 0.0, **options)
        bolt.in_turn = loop.in_turn
    else:
        loop = Loop(*parts, **options)
    try:
        while True:
            loop.run()
    except Drained:
        assert bolt.protocol.mode == "running", "no tuple was missing before a marker"
        return bolt.done


@st.composite
def inputs(draw):
    """Each sender's tuples and pulses, interleaved with the others', as pairs of a pipe."""
    pulses = draw(st.integers(0, 3))
    channels, numbers = [], itertools.count()
    for sender in SENDERS:
        items, sent = [], 0
        for pulse in range(pulses + 1):
            for key in draw(st.lists(st.sampled_from(KEYS), max_size=6)):
                sent += 1
                items.append((sender, [key, next(numbers), draw(st.integers(0, 9))]))
            if pulse < pulses:
                marker = Marker(kind=Kind.PULSE, number=pulse + 1, sent=sent, body={})
                items.append((sender, marker))
                sent += 1
        channels.append(items)
    order = draw(st.permutations([at for at, items in enumerate(channels) for _ in items]))
    fed = [iter(items) for items in channels]
    codes, pairs = {}, []
    for at in order:
        sender, item = next(fed[at])
        marker = isinstance(item, Marker)
        group = None if marker else key_group(item[0])
        channel = sender, "marker" if marker else "default", group
        if channel not in codes:
            codes[channel] = len(codes)
            pairs.append((DEFINE_CHANNEL, [codes[channel], "source", channel[1], sender, group]))
        pairs.append((codes[channel], [item] if marker else item))
    return pairs


def pieces_of(pairs, cuts):
    """The pairs, flat, in pieces; some pieces are empty, as nothing has come yet."""
    ends = [0, *sorted(min(cut, len(pairs)) for cut in cuts), len(pairs)]
    return [[part for code, values in pairs[a:b] for part in (code, list(values))] for a, b in itertools.pairwise(ends)]


def between_pulses(done):
    """The tuples before each pulse, and behind the last."""
    parts = [[]]
    for one in done:
        if isinstance(one, int):
            parts.append([])
        else:
            parts[-1].append(one)
    return parts


@given(inputs(), st.lists(st.integers(0, 80), max_size=12), st.integers(1, 8))
def test_between_two_markers_are_the_same_tuples_and_each_key_has_its_order(pairs, cuts, most):
    ordered, plain = run(pieces_of(pairs, cuts), most=most), run(pieces_of(pairs, cuts))
    assert [one for one in ordered if isinstance(one, int)] == [one for one in plain if isinstance(one, int)]
    for mine, theirs in zip(between_pulses(ordered), between_pulses(plain), strict=True):
        assert Counter(mine) == Counter(theirs)
        for key in KEYS:
            assert [one for one in mine if one[0] == key] == [one for one in theirs if one[0] == key]
