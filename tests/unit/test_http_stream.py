"""Live events of one topology beside others: the listener hears of the connection, and of ids that it is not sent."""

from __future__ import annotations

import asyncio
import re

import pytest

from leeward.adapters.http.stream import stream
from leeward.control.report.knowledge import Knowledge
from leeward.sim.memory import ManualClock

LONG_S = 20.0
BEAT = b": \n\n"


class Busy(Knowledge):
    """Something of another topology happens whenever it is asked for events."""

    def events(self, after, topology=""):
        found = super().events(after, topology)
        self.emit("measured", {"topology": "busy"})
        return found


async def pieces(knowledge, after, count, beat_s=0.0):
    """The first ones of a stream of the quiet topology."""
    source = stream(knowledge, after, "quiet", asyncio.Event(), beat_s)
    try:
        return [await asyncio.wait_for(anext(source), LONG_S) for _ in range(count)]
    finally:
        await source.aclose()


def emit(knowledge, *topologies):
    for name in topologies:
        knowledge.emit("leading", {"topology": name})


def last_id(sent):
    """The id of a listener that keeps to the specification: with an empty line, also of an event without data."""
    ids, told = b"", b""
    for line in b"".join(sent).split(b"\n"):
        ids = line.removeprefix(b"id: ") if line.startswith(b"id: ") else ids
        told = told if line else ids
    return int(told)


@pytest.mark.parametrize("kind", [Knowledge, Busy])
@pytest.mark.parametrize("beat_s", [0.0, 0.05])
def test_beats_come_whatever_happens_in_other_topologies(kind, beat_s):
    begin, *beats = asyncio.run(pieces(kind(ManualClock()), None, 4, beat_s))
    assert begin == b"retry: 2000\n\n" and all(beat.endswith(BEAT) for beat in beats)


def test_a_beat_comes_so_long_after_the_last_event():
    async def work():
        knowledge, loop = Busy(ManualClock()), asyncio.get_running_loop()
        source = stream(knowledge, None, "quiet", asyncio.Event(), 0.2)
        await anext(source)
        emit(knowledge, "quiet")
        assert b"leading" in await anext(source)
        sent = loop.time()
        assert (await asyncio.wait_for(anext(source), LONG_S)).endswith(BEAT)
        assert loop.time() - sent >= 0.2, "as it would be without the event"
        await source.aclose()

    asyncio.run(work())


def test_a_listener_that_comes_back_has_missed_nothing_of_its_topology():
    knowledge = Knowledge(ManualClock(), kept=5)
    seen = knowledge.newest_id
    emit(knowledge, "quiet", "busy", "busy", "busy", "busy")
    begin, event, beat, next_beat = asyncio.run(pieces(knowledge, seen, 4))
    assert b"leading" in event and last_id([begin, event]) == seen + 1
    assert beat == b"id: %d\n: \n\n" % (seen + 5) and next_beat == BEAT, "an id is told once"
    emit(knowledge, *["busy"] * 5)  # all that it has heard of is not kept any more
    again = asyncio.run(pieces(knowledge, last_id([begin, event, beat]), 2))
    assert again == [b"retry: 2000\n\n", b"id: %d\n: \n\n" % (seen + 10)]
    emit(knowledge, *["busy"] * 6)
    late = asyncio.run(pieces(knowledge, last_id(again), 2))
    assert late[1] == b"event: missed\ndata: {}\n\n", "one of these may have been of any topology"


def test_no_event_is_skipped_that_comes_while_the_stream_asks():
    class Moving(Knowledge):
        """Each time that it is asked for its newest id, something has just happened."""

        @property
        def newest_id(self):
            emit(self, "quiet")
            return super().newest_id

    seen = Knowledge(ManualClock()).newest_id
    sent = b"".join(asyncio.run(pieces(Moving(ManualClock()), seen, 4)))
    ids = [int(found) for found in re.findall(rb"id: (\d+)\ndata", sent)]
    assert len(ids) >= 3 and ids == list(range(seen + 1, seen + 1 + len(ids)))
