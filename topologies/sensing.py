"""Readings for the domains of DSSP as a topology: leeward submit sensing -o sensing.stream=NAME.

A domain hands subtasks to it whose file gives a node `"topology": {"redis": URL, "stream": NAME}` in place of a command
(docs/dssp.md); the Redis is the one of the topology, NAME is "sensing" unless it is set. Derive a class from `Sense`,
give it a `read`, and name it here: that is where readings come from. `-o "leeward.replicas={sense: 2}"` begins with two
replicas; plans and `leeward reconfigure sensing --replicas sense=3` change their number while subtasks flow.
"""

from typing import ClassVar

from bolts.sensing.answers import Answers
from bolts.sensing.asks import Asks
from bolts.sensing.sense import Sense
from leeward.runtime import Topology, balanced

#: Subtasks/s that one replica is taken to read, until they are measured.
READS, PASSES = 100, 10_000
MOST_REPLICAS = 4


def component(rate, replicas):
    """The configuration of a component."""
    return {"leeward.service_rate": rate, "leeward.max_replicas": replicas}


class Sensing(Topology):
    config: ClassVar = {
        # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
        "topology.acker.executors": 0,
        "topology.eventlogger.executors": 0,
        # a paused or restoring task answers, but may take long
        "topology.subprocess.timeout.secs": 120,
        "topology.message.timeout.secs": 60,
    }
    asks = Asks.spec(par=1, config=component(PASSES, 1))
    sense = Sense.spec(inputs={asks: balanced()}, par=MOST_REPLICAS, config=component(READS, MOST_REPLICAS))
    # a second, warm task lets the only replica move without a stop
    answers = Answers.spec(inputs={sense: balanced()}, par=2, config=component(PASSES, 1))
