"""The service of all topologies, on servers that are stand-ins: what its topologies share."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from leeward.adapters import nimbus, redis, serving, zookeeper
from leeward.adapters.wiring import Addresses
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.registry import Policies
from leeward.core.errors import ConfigError
from leeward.core.settings import settings_from
from leeward.core.topology_conf import REDIS_URL
from leeward.sim.memory import ListSink

NAMES = ("bikes", "taxi")
CONF = {REDIS_URL.name: "redis://127.0.0.1:1", "storm.zookeeper.servers": ["127.0.0.1"]}


class Nimbus:
    """Names the topologies and their only component."""

    def __init__(self, _) -> None:
        pass

    def topologies(self):
        return {name: f"{name}-1" for name in NAMES}

    def structure(self, name):
        components = (ComponentFacts(id="work", kind="stateful", inputs=()),)
        return Structure(id=f"{name}-1", name=name, components=components, conf=CONF)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def servers(monkeypatch):
    """None is asked."""
    idle = SimpleNamespace(close=lambda: None, stop=lambda: None)
    for module in (nimbus, serving):
        monkeypatch.setattr(module, "NimbusClient", Nimbus)
    for name in ("close_root", "tell_outages"):
        monkeypatch.setattr(zookeeper, name, lambda *_: None)
    monkeypatch.setattr(zookeeper, "connect", lambda *_, **__: idle)
    monkeypatch.setattr(redis, "RedisSnapshots", lambda *_, **__: idle)


def test_the_topologies_of_one_service_have_one_clock():
    """Their turns compare the times of several, and each clock is as far off as the wall clock was at its start."""
    clocks, stop, chosen = {}, threading.Event(), settings_from({"policy": "none"})

    def opened(topology, ports):
        clocks[topology] = ports.clock
        if len(clocks) == len(NAMES):
            stop.set()
        raise ConfigError("this is enough.", remedy="-")

    policies = Policies(chosen, lambda _: None)
    serving.serve_all(Addresses(nimbus=["-"]), chosen, policies, ListSink(), stop, opened=opened)
    assert clocks["bikes"] is clocks["taxi"]
