"""The keys `leeward.*` of a topology's configuration: each one once, with scope, type, default and a sentence.

`docs/settings.md` is printed from them. Keys of an application begin with a name of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from leeward.core.errors import ConfigError
from leeward.core.options import refuse_unknown

PREFIX = "leeward."


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration."""

    name: str
    scope: str  #: "topology": of the whole topology; "component": of one; "internal": Leeward sets it itself
    kind: str  #: of the value, in words
    default: str  #: in words
    about: str


REDIS_URL = Key("leeward.redis.url", "topology", "URL", "none: required", "Redis, without a password")
RABBITMQ_URL = Key("leeward.rabbitmq.url", "topology", "URL", "none", "RabbitMQ of a sink, without a password")
SECRETS_FILE = Key("leeward.secrets.file", "topology", "path", "none", "file of passwords, the same on each machine")
ZOOKEEPER_ROOT = Key("leeward.zookeeper.root", "topology", "path", "/leeward", "where Leeward's znodes are")
REPLICAS = Key("leeward.replicas", "topology", "map of component to number", "1 each", "replicas before the first plan")
MAX_REPLICAS = Key("leeward.max_replicas", "component", "number", "its tasks", "most replicas that a plan may give")
PINNED = Key("leeward.pinned", "component", "list of hosts", "any", "the only nodes that may run its replicas")
PINS = Key(
    "leeward.pins", "topology", "map of component to list of hosts", "none",
    "the only nodes that may run a component's replicas, in place of its `leeward.pinned`",
)  # fmt: skip
FIRST_PLAN = Key(
    "leeward.first_plan.secs", "topology", "s", "0",
    "from its submission, for which it waits for its first plan before Storm's default scheduler places it; for "
    "policies that plan from facts and need no rates",
)  # fmt: skip
APART = Key(
    "leeward.apart", "topology", "list of lists of components", "none", "no node holds replicas of two of one list"
)
FACTS = Key("leeward.facts", "component", "map", "none", "facts for its policy, as the policy's page names them")
SERVICE_RATE = Key(
    "leeward.service_rate", "component", "tuples/s", "measured",
    "of one replica, until it is measured; for emulated times also a map of a node's `class` to the rate at `speed` 1, "
    "both as in the node's meta",
)  # fmt: skip
SERVICE_TIMES = Key(
    "leeward.service_times", "topology", "`none` or `emulated`", "none",
    "emulated: each tuple takes 1 / `leeward.service_rate` without burning the processor",
)  # fmt: skip
SERVICE_SPEED = Key(
    "leeward.service_speed", "topology", "number", "1",
    "the rate of a replica is `leeward.service_rate` times this; half the speed at half the input's rate is the same "
    "load for half the processors",
)  # fmt: skip
SWAP_DIR = Key("leeward.swap.dir", "topology", "path", "beside the worker", "where state waits for the next task")
DIRECT = Key("leeward.handover.direct", "topology", "true or false", "true", "state moves by TCP; false: by Redis")
AWAY_SECS = Key("leeward.away.secs", "topology", "s", "2", "silence after which a worker ends its lost process")
STORE = Key(
    "leeward.state.store", "topology", "`redis`, a name or `module:Class`", "redis",
    "where the bytes of checkpoints are; a name: in fragments at agents, by the scheme of this name",
)  # fmt: skip
AGENTS = Key(
    "leeward.state.agents", "topology", "list of host:port, or of near:host:port or near:port", "none",
    "agents that keep fragments; `near:`: those next to this agent of an overlay do, or to the one of the task's node "
    "at this port",
)  # fmt: skip
STORE_OPTIONS = Key("leeward.state.options", "topology", "map", "the scheme's", "settings of the scheme")
QUEUE = Key("leeward.queue", "internal", "map", "none", "the discipline that orders its waiting tuples, with its facts")
ROUTER = Key("leeward.router", "internal", "map", "none", "the router of its senders, with its options")
ROUTERS = Key("leeward.routers", "internal", "map", "none", "component -> its senders' router, with its options")
KIND = Key("leeward.kind", "internal", "text", "by its class", "source, stateful or stateless")

KEYS = (
    REDIS_URL, RABBITMQ_URL, SECRETS_FILE, ZOOKEEPER_ROOT, REPLICAS, MAX_REPLICAS, FIRST_PLAN, PINNED, PINS, APART,
    FACTS, SERVICE_RATE, SERVICE_TIMES, SERVICE_SPEED, SWAP_DIR, DIRECT, AWAY_SECS, STORE, AGENTS, STORE_OPTIONS, QUEUE,
    ROUTER, ROUTERS, KIND,
)  # fmt: skip


def check_conf(conf: Mapping[str, object]) -> None:
    """Raises ConfigError for a key `leeward.*` that is unknown, with the nearest ones, and for a wrong number."""
    mine = {name: value for name, value in conf.items() if name.startswith(PREFIX)}
    refuse_unknown("topology key", mine, [key.name for key in KEYS])
    service_speed(mine)
    wait = mine.get(FIRST_PLAN.name, 0)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait < math.inf:
        raise ConfigError(f"{FIRST_PLAN.name} is {wait!r}.", remedy="Set it to seconds, as 30, or to 0 for no wait.")


def service_speed(conf: Mapping[str, object]) -> float:
    """Factor of all service rates, by the topology's configuration. Raises ConfigError unless it is above 0."""
    speed = conf.get(SERVICE_SPEED.name, 1)
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed < math.inf:
        raise ConfigError(f"{SERVICE_SPEED.name} is {speed!r}.", remedy="Set it to a number above 0, as 0.5.")
    return float(speed)


def declared_rate(component: Mapping[str, object], topology: Mapping[str, object]) -> float | None:
    """Tuples/s of one replica by the configurations of both; None where there is none, or one for each class of node.

    Raises ConfigError as `service_speed` does.
    """
    rate = component.get(SERVICE_RATE.name)
    return rate * service_speed(topology) if isinstance(rate, int | float) and rate > 0 else None


def page() -> str:
    """The keys as a table in Markdown."""
    rows = [f"| `{key.name}` | {key.scope} | {key.kind} | {key.default} | {key.about} |" for key in KEYS]
    return "\n".join(["| key | scope | value | default | |", "| --- | --- | --- | --- | --- |", *rows])
