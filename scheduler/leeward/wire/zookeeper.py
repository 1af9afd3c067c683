"""A client of ZooKeeper that never gives up, and whose requests cost little."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

#: Between two tries: never more often, never less, in seconds.
_RETRY = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}


class _Handler(SequentialThreadingHandler):
    """kazoo makes a selector for each of the four waits of a request: 40 % of the processor that a request takes."""

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: object = (), timeout: float | None = None
    ) -> tuple[list, list, list]:
        """As select.select, for descriptors of any number."""
        poll = select.poll()
        for file in readers:
            poll.register(file, select.POLLIN)
        for file in writers:
            poll.register(file, select.POLLOUT)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)}
        return [f for f in readers if _fd(f) in ready], [f for f in writers if _fd(f) in ready], []


def _fd(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def client(hosts: str, *, session_s: float = 6.0, patience_s: float | None = None) -> KazooClient:
    """A client that is not started. `session_s`: its session outlives an outage so long; calls made through
    `client.retry` are tried again for `patience_s` seconds (None: for ever).
    """
    return KazooClient(
        hosts=hosts,
        timeout=session_s,
        handler=_Handler(),
        connection_retry=KazooRetry(**_RETRY),
        command_retry=KazooRetry(**_RETRY, deadline=patience_s),
    )
