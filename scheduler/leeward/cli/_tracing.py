"""`leeward serve --otlp`: each reconfiguration as a trace; without the option nothing of OpenTelemetry is imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leeward.control.ports import EventSink


@contextmanager
def traced(address: str | None, sink: EventSink) -> Iterator[EventSink]:
    """The sink that the services are to tell. Raises ConfigError for an address that is none."""
    if address is None:
        yield sink
        return
    from leeward.adapters.clock import SystemClock
    from leeward.adapters.events import Fan
    from leeward.adapters.otlp import Traces

    traces = Traces(address, SystemClock())
    try:
        yield Fan(sink, traces)
    finally:
        traces.close()
