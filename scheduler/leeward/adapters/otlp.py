"""Sends each reconfiguration that is over to a collector of traces: OpenTelemetry's protocol (OTLP) over HTTP.

Only `leeward serve --otlp` imports this module; it needs the extra `leeward[otel]`. A collector that is away costs
nothing but spans: a bounded queue of the library's, sent on a thread of its own, drops those that are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from leeward import __version__
from leeward.control.ports import Clock
from leeward.control.report.fold import reconfiguration_of
from leeward.control.report.spans import Span, spans_of
from leeward.core.errors import ConfigError

#: Path of traces below a collector's address.
TRACES = "/v1/traces"
#: One request to the collector has so long, and so has each try again, s.
REQUEST_S = 5
#: Spans wait for others to be sent with them for so long, ms.
GATHER_MS = 1000


class Traces:
    """EventSink: see the module. `address`: of the collector, as http://127.0.0.1:4318. Raises ConfigError."""

    def __init__(self, address: str, clock: Clock) -> None:
        if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc:
            raise ConfigError(
                f"--otlp is {address!r}.", remedy="Write http://HOST:PORT, such as http://127.0.0.1:4318."
            )
        exporter = OTLPSpanExporter(endpoint=address.rstrip("/") + TRACES, timeout=REQUEST_S)
        resource = Resource.create({SERVICE_NAME: "leeward", SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=GATHER_MS))
        self._tracer = self._provider.get_tracer("leeward", __version__)
        self._clock = clock

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        """As an EventSink."""
        if action != "reconfiguration_ended":
            return
        entry = reconfiguration_of(fields, self._clock.now())
        whole, phases = spans_of(str(fields.get("topology", "")), entry)
        parent = self._tracer.start_span(whole.name, start_time=_ns(whole.begun), attributes=dict(whole.attributes))
        for phase in phases:
            self._span(phase, set_span_in_context(parent))
        if whole.failed:
            parent.set_status(Status(StatusCode.ERROR, whole.failed))
        parent.end(end_time=_ns(whole.ended))

    def _span(self, span: Span, context: Context) -> None:
        made = self._tracer.start_span(
            span.name, context=context, start_time=_ns(span.begun), attributes=dict(span.attributes)
        )
        made.end(end_time=_ns(span.ended))

    def close(self) -> None:
        """Send the rest, as far as the collector takes it at once."""
        self._provider.shutdown()


def _ns(seconds: float) -> int:
    """Nanoseconds since 1970."""
    return round(1e9 * seconds)
