"""What runs inside Storm workers: base classes for elastic and stateful components, and their groupings.

Knows `leeward.core`, streamparse, Redis and ZooKeeper; nothing of solvers, policies or Spark.
"""

from leeward.runtime.components import ElasticBolt, Pulse, StatefulBolt, StatefulSpout
from leeward.runtime.conf import open_redis
from leeward.runtime.dsl import balanced, keyed
from leeward.runtime.fencing import FencedRedis, FencingToken
from leeward.runtime.topology import DEFAULTS
from leeward.wire.secrets import secrets_of

__all__ = [
    "DEFAULTS",
    "ElasticBolt",
    "FencedRedis",
    "FencingToken",
    "Pulse",
    "StatefulBolt",
    "StatefulSpout",
    "balanced",
    "keyed",
    "open_redis",
    "secrets_of",
]
