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
    from leeward.runtime.state.scattered import Scattered

#: Entry points of schemes, as `control/registry.py` finds them; and the value that needs none.
GROUP, REDIS = "leeward.stores", "redis"


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

    if not secrets.agent_secret:
        raise ConfigError(
            f"{STORE.name} is {where!r}, but the secrets file has no agent_secret.",
            remedy=f"Put it into the file that {FILE_KEY} names; agents and service need it, too.",
        )
    scheme = _scheme(located(where), conf.get(STORE_OPTIONS.name) or {})
    found = Scattered(scheme, _agents(conf.get(AGENTS.name)), secrets.agent_secret.encode(), node=node)
    scheme.spread(b"", neighbours=len(found.agents))  # refuses too few
    return found


def _scheme(where: str, options: Any) -> Scheme:
    kind = named.load(where, f"{STORE.name} is {where!r}")
    if not isinstance(options, Mapping):
        raise ConfigError(f"{STORE_OPTIONS.name} is {options!r:.80}.", remedy="Give a map of settings.")
    scheme: Scheme = kind(read(kind.Settings, options, where=f"{STORE_OPTIONS.name}."))
    return scheme


def _agents(value: Any) -> list[str]:
    """Addresses; a text has commas between them."""
    agents = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(agents, list) or not agents:
        raise ConfigError(f"{AGENTS.name} is {value!r:.80}.", remedy="Give a list of host:port.")
    for agent in agents:
        host, _, port = agent.rpartition(":") if isinstance(agent, str) else ("", "", "")
        if not host or not port.isdigit():
            raise ConfigError(f"{AGENTS.name} has {agent!r:.80}.", remedy="Give each agent as host:port.")
    return agents
