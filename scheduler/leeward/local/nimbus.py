"""Nimbus' view of the cluster, over Thrift with the interface that streamparse ships."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One answer of getClusterInfo."""

    #: whether this Nimbus leads, so that it takes submissions
    leader: bool
    #: Storm's version, by the Nimbus that leads
    version: str
    #: host names of the registered supervisors
    supervisors: frozenset[str]
    #: (name, status, workers, executors, tasks) of each topology, by name
    topologies: tuple[tuple[str, str, int, int, int], ...]


@contextmanager
def nimbus_client(host: str, port: int, *, timeout_ms: int = 5000) -> Iterator[Any]:
    """A framed binary Thrift client. Raises OSError or thriftpy2's TException when Nimbus does not answer."""
    from streamparse.thrift import Nimbus
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.rpc import make_client
    from thriftpy2.transport import TFramedTransportFactory

    client = make_client(
        Nimbus,
        host=host,
        port=port,
        proto_factory=TBinaryProtocolFactory(),
        trans_factory=TFramedTransportFactory(),
        timeout=timeout_ms,
    )
    try:
        yield client
    finally:
        client.close()


def fetch_summary(host: str, port: int) -> Summary | None:
    """Ask Nimbus; None while it does not answer (starting, or down)."""
    from thriftpy2.thrift import TException

    try:
        with nimbus_client(host, port) as client:
            info = client.getClusterInfo()
    except (OSError, TException):
        return None
    leaders = [nimbus for nimbus in info.nimbuses or () if nimbus.isLeader]
    return Summary(
        leader=bool(leaders),
        version=leaders[0].version if leaders else "",
        supervisors=frozenset(supervisor.host for supervisor in info.supervisors or ()),
        topologies=tuple(
            sorted((t.name, t.status, t.num_workers, t.num_executors, t.num_tasks) for t in info.topologies or ())
        ),
    )
