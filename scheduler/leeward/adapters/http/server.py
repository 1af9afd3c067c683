"""The API on a thread of its own, beside the services of the topologies."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import BaseRoute

from leeward.adapters.http.access import check_reach, hosts_of, tokens_of
from leeward.adapters.http.application import application
from leeward.adapters.http.desk import Desk
from leeward.adapters.http.studies import Studies
from leeward.adapters.organisations.serving import listen, serve
from leeward.adapters.organisations.tls import server_tls
from leeward.control.ports import EventSink
from leeward.control.report.knowledge import Knowledge
from leeward.core.errors import ConfigError

#: The thread that ends has so long, s.
END_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where the service listens, and how."""

    host: str
    port: int  #: 0: a free one
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False  #: plain connections from other machines are allowed
    names: tuple[str, ...] = ()  #: further names under which it is asked

    def tls(self) -> ssl.SSLContext | None:
        """The context of its connections; None: plain ones. Raises ConfigError."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("one of --tls-cert and --tls-key is given.", remedy="Give both, or none.")
        tls = server_tls(self.certificate, self.key) if self.certificate and self.key else None
        check_reach(self.host, encrypted=tls is not None, insecure=self.insecure)
        return tls


def address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, with brackets around an IPv6 address. Raises ConfigError."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ConfigError(f"--http is {text!r}.", remedy="Write HOST:PORT, such as 127.0.0.1:8600; port 0: a free one.")
    return host, int(port)


@contextmanager
def answering(
    where: Where, token: str, knowledge: Knowledge, sink: EventSink, *, explain: str,
    pages: Callable[[], Sequence[BaseRoute]] = tuple,
) -> Iterator[Desk]:  # fmt: skip
    """While the API answers; gives the desk that the services of the topologies are to tell of their ports.

    `token`: the service_token; empty: nobody may act. `explain`: `module:function` that explains a view (`studies.py`).
    `pages`: makes further routes. Raises ConfigError, LeewardError if the address cannot be used.
    """
    tls, tokens = where.tls(), tokens_of(token)
    listener = listen(where.host, where.port)
    hosts, desk, loop = hosts_of(where.host, where.names), Desk(sink), asyncio.new_event_loop()
    stop = asyncio.Event()

    studies = Studies(desk, explain, over=stop.is_set)
    app = application(knowledge, desk, studies, tokens=tokens, hosts=hosts, stop=stop, more=pages())
    serving = serve(app, listener, stop, tls=tls)
    thread = threading.Thread(target=loop.run_until_complete, args=(serving,), name="leeward-http", daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sink.emit("http_listens", {"url": f"http{'s' if tls else ''}://{shown}:{port}/", "acting": tokens is not None})
    try:
        yield desk
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(END_S)
        if not thread.is_alive():
            loop.close()
