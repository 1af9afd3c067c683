"""A collector of traces over HTTP, which reads the official messages."""

from __future__ import annotations

import gzip
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LONG_S = 30.0


class Receiver:
    """A collector: path and message of each request, as they come."""

    def __init__(self) -> None:
        self.got: queue.Queue[tuple[str, ExportTraceServiceRequest]] = queue.Queue()
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                message = ExportTraceServiceRequest()
                message.ParseFromString(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()
                got.put((self.path, message))

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def attributes(span) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def received(receiver: Receiver, count: int) -> list:
    """So many spans, parents before their children."""
    spans: list = []
    until = time.monotonic() + LONG_S
    while len(spans) < count:
        path, message = receiver.got.get(timeout=max(0.1, until - time.monotonic()))
        assert path == "/v1/traces"
        for resource in message.resource_spans:
            assert attributes(resource.resource)["service.name"] == "leeward"
            for scope in resource.scope_spans:
                spans += scope.spans
    return sorted(spans, key=lambda span: (span.trace_id, bool(span.parent_span_id), span.start_time_unix_nano))
