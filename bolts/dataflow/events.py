"""Events of a dataflow, and how their numbers show a loss. Pure.

A source numbers its events 1, 2, 3, ...  A query gives its outputs numbers of their own for each path, and the number
of outputs follows from the number of inputs alone.  So on each path from a source to a sink the numbers are 1, 2, 3,
... without a gap, wherever queries run, and whatever the order is in which events of two paths come.  Each event says
how many before it were lost or came twice on its path so far, as a query may swallow the event behind a gap.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

#: Fields of a tuple.
FIELDS = ("path", "number", "sent_us", "lost", "doubled", "pad")
#: Bytes of an event without its padding, about.
HEADER_BYTES = 60
#: So that 10 * 0.1 counts as one.
_ROUNDING = 1e-9


class Event(NamedTuple):
    """An event on its way; `path`: names of the components that it has passed, with dots between."""

    path: str
    number: int
    sent_us: int  #: when it left its source, us since 1970
    lost: int  #: events that are missing on its path, up to it
    doubled: int  #: events that came twice


def outputs(inputs: int, selectivity: float) -> int:
    """How many events a query has emitted after so many."""
    return int(inputs * selectivity + _ROUNDING)


def passed_on(event: Event, name: str, selectivity: float) -> list[Event]:
    """The outputs of the query `name` for this input."""
    first, last = outputs(event.number - 1, selectivity), outputs(event.number, selectivity)
    return [event._replace(path=f"{event.path}.{name}", number=number) for number in range(first + 1, last + 1)]


def counted(state: MutableMapping[Any, Any], event: Event) -> Event:
    """Note an input in the state, path -> [last number, lost, doubled]; the event with what was found so far."""
    last, lost, doubled = state.get(event.path, (0, 0, 0))
    if event.number > last:
        lost += event.number - last - 1
        last = event.number
    else:
        doubled += 1
    state[event.path] = [last, lost, doubled]
    return event._replace(lost=event.lost + lost, doubled=event.doubled + doubled)


def padding(event_bytes: float) -> str:
    """The text that makes an event about as large as it should be."""
    return "." * max(0, round(event_bytes) - HEADER_BYTES)
