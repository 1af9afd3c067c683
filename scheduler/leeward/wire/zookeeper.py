"""A client of ZooKeeper that never gives up, and whose requests cost little.

With a secret it authenticates (scheme digest), and gives all that it creates an ACL for that identity alone. So the
control records, journals, requests and placements of a cluster can be neither read nor written without the secret.
"""

from __future__ import annotations

import contextlib
import logging
import select
from collections.abc import Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Auth
from kazoo.retry import KazooRetry
from kazoo.security import ACL, make_digest_acl

from leeward.core.secrets import NO_SECRETS, ZOOKEEPER_USER, Secrets

#: Between two tries: never more often, never less, in seconds.
_RETRY = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo makes a selector for each of the four waits of a request: 40 % of the processor that a request takes."""

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: object = (), timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
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


class _WithoutSecrets(logging.Filter):
    """kazoo writes each request to its log at level DEBUG, also the one that carries the secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and any(isinstance(value, Auth) for value in record.args))


_log = logging.getLogger("kazoo.leeward")
_log.addFilter(_WithoutSecrets())


def client(
    hosts: str, *, secrets: Secrets = NO_SECRETS, session_s: float = 6.0, patience_s: float | None = None
) -> KazooClient:
    """A client that is not started. `session_s`: its session outlives an outage so long; calls made through
    `client.retry` are tried again for `patience_s` seconds (None: for ever).
    """
    login = secrets.zookeeper_login()
    return KazooClient(
        hosts=hosts,
        timeout=session_s,
        handler=_Handler(),
        connection_retry=KazooRetry(**_RETRY),
        command_retry=KazooRetry(**_RETRY, deadline=patience_s),
        auth_data=[("digest", login)] if login else None,
        default_acl=_acl(secrets),
        logger=_log,
    )


def _acl(secrets: Secrets) -> list[ACL] | None:
    """For the owner of the secret alone; None without one."""
    if not secrets.zookeeper_secret:
        return None
    return [make_digest_acl(ZOOKEEPER_USER, secrets.zookeeper_secret, all=True)]


def close_to_others(client: KazooClient, path: str, *, deep: bool = True) -> None:
    """Put the client's ACL on a znode and (`deep`) on all below it, the deepest first. For what was created open.

    Does nothing for a client without a secret, a znode that is not there, or one that has the ACL already. Raises
    NoAuthError if a znode belongs to somebody else.
    """
    if client.default_acl is None:
        return
    with contextlib.suppress(NoNodeError):
        acl, _ = client.retry(client.get_acls, path)
        if acl == client.default_acl:
            return
        for child in client.retry(client.get_children, path) if deep else ():
            close_to_others(client, f"{path}/{child}")
        client.retry(client.set_acls, path, client.default_acl)
