"""Code inside Storm workers: base classes for elastic and stateful components, and their groupings.

Knows `leeward.core`, streamparse, Redis and ZooKeeper; nothing of solvers, policies or Spark.
"""

from leeward.core.view import Arrow, View
from leeward.runtime.dsl.queues import ordered_by
from leeward.runtime.dsl.routers import routed_by
from leeward.runtime.dsl.specs import balanced, keyed
from leeward.runtime.dsl.topology import DEFAULTS, Topology
from leeward.runtime.state.fencing import FencedRedis, FencingToken
from leeward.runtime.task.components import ElasticBolt, Pulse, StatefulBolt, StatefulSpout
from leeward.runtime.task.conf import open_redis
from leeward.wire.secrets import secrets_of

__all__ = [
    "DEFAULTS",
    "Arrow",
    "ElasticBolt",
    "FencedRedis",
    "FencingToken",
    "Pulse",
    "StatefulBolt",
    "StatefulSpout",
    "Topology",
    "View",
    "balanced",
    "keyed",
    "open_redis",
    "ordered_by",
    "routed_by",
    "secrets_of",
]
