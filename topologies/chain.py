"""A task of bi-modal links as a topology: LEEWARD_STREAM=FILE.json leeward submit chain --name NAME.

The file's form is in `leeward.policies.bimodal.model.stream_file`. A source at one node, services in a row, and a sink
at another node; every event passes all of them. The policy `bimodal` lets the agents map it.
"""

import os
from pathlib import Path
from types import new_class

from bolts.dataflow.query import Query
from bolts.dataflow.sink import Sink
from bolts.dataflow.source import Source
from leeward.core.errors import ConfigError
from leeward.policies.bimodal.facts import components_of
from leeward.policies.bimodal.model.stream_file import read_stream
from leeward.runtime import Topology, balanced

VARIABLE = "LEEWARD_STREAM"
CONFIG = {
    # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
    "topology.acker.executors": 0,
    "topology.eventlogger.executors": 0,
    # a paused or restoring task answers, but may take long
    "topology.subprocess.timeout.secs": 120,
    "topology.message.timeout.secs": 60,
    # its policy plans from facts: workers that Storm places before that would have to start again
    "leeward.first_plan.secs": 30,
}


def specs(stream):
    """Name -> component, each behind the one that it reads from."""
    found, before = {}, None
    components = components_of(stream)
    for component in components:
        config = {"leeward.facts": dict(component.facts), "leeward.max_replicas": 1}
        if component.pinned:
            config["leeward.pinned"] = list(component.pinned)
        if before is None:
            before = Source.spec(name=component.id, par=1, config=config)
        else:
            kind = Sink if component is components[-1] else Query
            before = kind.spec(name=component.id, inputs={before: balanced()}, par=1, config=config)
        found[component.id] = before
    return found


def topology(file):
    """The topology class of a stream's file."""
    return new_class("Chain", (Topology,), {}, lambda body: body.update(specs(read_stream(file)), config=CONFIG))


if VARIABLE not in os.environ:
    raise ConfigError(f"{VARIABLE} is not set.", remedy="Name the file of a stream in it; see topologies/chain.py.")
Chain = topology(Path(os.environ[VARIABLE]))
