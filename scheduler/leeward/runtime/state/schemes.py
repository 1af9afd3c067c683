"""`leeward.state.store` of a topology's configuration: the scheme that it names, and the agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leeward.core.errors import ConfigError
from leeward.core.options import read
from leeward.core.secrets import FILE_KEY, Secrets
from leeward.core.topology_conf import AGENTS, STORE, STORE_OPTIONS
from leeward.runtime import named

if TYPE_CHECKING:
    from leeward.core.fragments import Scheme
    from leeward.runtime.state.nearby import Nearby
    from leeward.runtime.state.scattered import Scattered

#: Entry points of schemes, as `control/registry.py` finds them; and the value that needs none.
GROUP, REDIS = "leeward.stores", "redis"
#: Before the address of an agent: not it keeps the fragments, but those near it.
NEAR = "near:"
_FORMS = "Give a list of host:port, or near:host:port or near:port of agents of an overlay."


def located(name: str) -> str:
    """`module:Class` of a store's name; `redis` and what has a colon as they are. Raises ConfigError."""
    return REDIS if name == REDIS else named.located(name, GROUP, f"value of {STORE.name}", also=[REDIS])


def scattered_of(conf: Mapping[str, Any], node: str, secrets: Secrets) -> Scattered | None:
    """The agents of this topology, for a task on this node; None: Redis keeps the bytes.

    Raises ConfigError for a scheme that cannot be loaded, options that it does not know, too few agents, no secret.
    """
    where = conf.get(STORE.name, REDIS)
    if not isinstance(where, str) or not where:
        raise ConfigError(f"{STORE.name} is {where!r}.", remedy=f"Set it to {REDIS}, a name, or module:Class.")
    if where == REDIS:
        return None
    from leeward.runtime.state.scattered import Scattered
    from leeward.wire.fragments import MOST_NEAR

    if not secrets.agent_secret:
        raise ConfigError(
            f"{STORE.name} is {where!r}, but the secrets file has no agent_secret.",
            remedy=f"Put it into the file that {FILE_KEY} names; agents and service need it, too.",
        )
    scheme = _scheme(located(where), conf.get(STORE_OPTIONS.name) or {})
    secret = secrets.agent_secret.encode()
    agents = _agents(conf.get(AGENTS.name), node, secret)
    found = Scattered(scheme, agents, secret, node=node)
    scheme.spread(b"", neighbours=len(found.agents) if isinstance(agents, list) else MOST_NEAR)  # refuses too few
    return found


def _scheme(where: str, options: Any) -> Scheme:
    kind = named.load(where, f"{STORE.name} is {where!r}")
    if not isinstance(options, Mapping):
        raise ConfigError(f"{STORE_OPTIONS.name} is {options!r:.80}.", remedy="Give a map of settings.")
    scheme: Scheme = kind(read(kind.Settings, options, where=f"{STORE_OPTIONS.name}."))
    return scheme


def _agents(value: Any, node: str, secret: bytes) -> list[str] | Nearby:
    """Addresses; a text has commas between them. With `near:` the agents that are asked, one after another."""
    agents = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(agents, list) or not agents:
        raise ConfigError(f"{AGENTS.name} is {value!r:.80}.", remedy=_FORMS)
    near = [isinstance(agent, str) and agent.startswith(NEAR) for agent in agents]
    if any(near) and not all(near):
        raise ConfigError(
            f"{AGENTS.name} has {agents[near.index(False)]!r:.80} beside {agents[near.index(True)]!r:.80}.",
            remedy="Give agents that keep the fragments, or agents of an overlay that are asked, not both.",
        )
    if not any(near):
        return [_address(agent, agent) for agent in agents]
    from leeward.runtime.state.nearby import Nearby

    return Nearby([_asked(agent, node) for agent in agents], secret, node=node)


def _asked(agent: str, node: str) -> str:
    """The address of an agent that is asked; without a host it is on the task's own node."""
    address = agent.removeprefix(NEAR)
    return _address(f"{node}:{address}" if ":" not in address else address, agent)


def _address(address: Any, given: Any) -> str:
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not port.isdigit():
        raise ConfigError(f"{AGENTS.name} has {given!r:.80}.", remedy=_FORMS)
    return str(address)
