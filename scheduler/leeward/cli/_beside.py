"""The HTTP side of `leeward serve`; without `--http` nothing of it is imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leeward.adapters.http.desk import Desk
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import EventSink

#: Explains a view, as `leeward explain TOPOLOGY` does: a process of its own imports it.
EXPLAIN = "leeward.policies.edrp.questions.running:explain_view"


@dataclass(frozen=True, slots=True)
class Beside:
    """The options of the HTTP side, and the collector of traces."""

    http: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    names: tuple[str, ...] = ()
    otlp: str | None = None

    @contextmanager
    def answering(self, addresses: Addresses, sink: EventSink) -> Iterator[tuple[EventSink, Desk | None]]:
        """The sink that the services are to tell, and the desk that is to be told of their ports and settings.

        Raises ConfigError for options or a secrets file that are wrong, LeewardError for an address in use.
        """
        if self.http is None:
            self._refuse_alone()
            yield sink, None
            return
        from leeward.adapters.clock import SystemClock
        from leeward.adapters.events import Fan
        from leeward.adapters.http.server import Where, address, answering
        from leeward.control.report.knowledge import Knowledge
        from leeward.dashboard.service.page import routes
        from leeward.local import places

        host, port = address(self.http)
        where = Where(
            host=host, port=port, certificate=self.certificate, key=self.key, insecure=self.insecure, names=self.names
        )
        knowledge = Knowledge(SystemClock())
        both = Fan(sink, knowledge)
        with answering(
            where, _token(addresses), knowledge, both, explain=EXPLAIN, pages=lambda: routes(places.web())
        ) as desk:
            yield both, desk

    def _refuse_alone(self) -> None:
        from leeward.core.errors import ConfigError

        given = {
            "--tls-cert": self.certificate, "--tls-key": self.key, "--insecure": self.insecure,
            "--http-name": self.names,
        }  # fmt: skip
        for name, value in given.items():
            if value:
                raise ConfigError(f"{name} is given without --http.", remedy="Give --http HOST:PORT, too.")


def _token(addresses: Addresses) -> str:
    """The service_token of the secrets file that is named on this machine; empty without one."""
    from leeward.wire.secrets import read_secrets

    return read_secrets(addresses.secrets).service_token if addresses.secrets else ""
