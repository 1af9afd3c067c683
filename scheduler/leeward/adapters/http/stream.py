"""Server-sent events: decisions and measurements as they come, resumed behind the last id that a listener has seen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from pydantic import TypeAdapter

from leeward.adapters.http.answers import EventAnswer
from leeward.control.report.knowledge import Event, Knowledge

#: A comment is sent after so many seconds without an event, so that both ends notice a connection that is gone. With it
#: comes the id up to which events were left out: an id without data is no event, but resumes there.
BEAT_S = 15.0
#: Listeners at a time; more are answered 503.
LISTENERS = 64

_EVENT = TypeAdapter(EventAnswer)


def written(event: Event) -> bytes:
    """An event as the stream has it: without a name, so that a listener hears actions that it does not know."""
    data = EventAnswer(id=event.id, t=event.t, action=event.action, topology=event.topology, fields=event.fields)
    return b"id: %d\ndata: %s\n\n" % (event.id, _EVENT.dump_json(data, fallback=str))


async def stream(
    knowledge: Knowledge, after: int | None, topology: str, stop: asyncio.Event, beat_s: float = BEAT_S
) -> AsyncIterator[bytes]:
    """Until `stop`, or until the listener is gone. `after`: the last id that it has seen; None: nothing of before."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended a moment before
            loop.call_soon_threadsafe(news.set)

    end = knowledge.listen(wake)
    stopping = asyncio.create_task(stop.wait(), name="end of a stream")
    try:
        missed = after is not None and knowledge.missed(after)
        newest = knowledge.newest_id
        seen = newest if after is None else min(after, newest)  # nothing comes behind an id of a process begun later
        yield b"retry: 2000\n\n"
        if missed:
            yield b"event: missed\ndata: {}\n\n"
        told, due = seen, loop.time() + beat_s  # the id that the listener has; news of others put no beat off
        while not stop.is_set():
            news.clear()
            passed = knowledge.newest_id  # before the events are read: those up to here were sent or left out
            found = knowledge.events(seen, topology)
            seen = max(seen, passed, *(event.id for event in found[-1:]))
            if found:  # in one piece: a listener that is gone is noticed between two
                told = found[-1].id
                yield b"".join(map(written, found))
            elif loop.time() < due:
                await _either(news, stopping, due - loop.time())
                continue
            else:
                yield (b"id: %d\n" % seen if seen > told else b"") + b": \n\n"
                told = seen
            due = loop.time() + beat_s
    finally:
        end()
        stopping.cancel()


async def _either(news: asyncio.Event, stopping: asyncio.Task[object], longest_s: float) -> None:
    """Wait for news or the end, at most so long."""
    waiting = asyncio.create_task(news.wait())
    try:
        await asyncio.wait({waiting, stopping}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
