"""A dataflow of edge and cloud as a topology: LEEWARD_DATAFLOW=FILE.json leeward submit dataflow --name NAME.

The file's form is in `leeward.policies.edge_cloud.model.dataflow_file`. Each query has two tasks, one replica and one
that is warm, so that it can move while events flow. How long an event takes depends on the node: see
`leeward.service_rate` in docs/settings.md.
"""

import os
from pathlib import Path
from types import new_class

from bolts.dataflow.query import Query
from bolts.dataflow.sink import Sink
from bolts.dataflow.source import Source
from leeward.core.errors import ConfigError
from leeward.policies.edge_cloud.benchmark import NUMBER, TYPES
from leeward.policies.edge_cloud.facts import components_of
from leeward.policies.edge_cloud.model.dataflow_file import read_dataflow
from leeward.runtime import Topology, balanced

VARIABLE = "LEEWARD_DATAFLOW"
#: A source computes nothing; where service times are emulated each component needs a rate.
SOURCE_RATE = 1e6
CONFIG = {
    # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
    "topology.acker.executors": 0,
    "topology.eventlogger.executors": 0,
    # a paused or restoring task answers, but may take long
    "topology.subprocess.timeout.secs": 120,
    "topology.message.timeout.secs": 60,
    "leeward.service_times": "emulated",
    # its policy plans from facts: workers that Storm places before that would have to start again
    "leeward.first_plan.secs": 30,
}


def service_rate(component):
    """Events/s of one busy replica: by class of node, at speed 1."""
    if component.source:
        return SOURCE_RATE
    one = TYPES[NUMBER[component.facts["type"]]]
    return {"edge": 1 / one.edge_s, "cloud": 1 / one.cloud_s}


def specs(written):
    """Name -> component, each after those that it reads from."""
    components = components_of(written.dataflow, written.nodes)
    found = {}
    for v in written.dataflow.order:
        component = components[v]
        config = {
            "leeward.facts": dict(component.facts),
            "leeward.max_replicas": 1,
            "leeward.service_rate": service_rate(component),
        }
        if component.pinned:
            config["leeward.pinned"] = list(component.pinned)
        if component.source:
            found[component.id] = Source.spec(name=component.id, par=1, config=config)
            continue
        inputs = {found[components[u].id]: balanced() for u in written.dataflow.parents[v]}
        kind = Sink if component.facts["kind"] == "sink" else Query
        found[component.id] = kind.spec(name=component.id, inputs=inputs, par=2, config=config)
    return found


def topology(file):
    """The topology class of a dataflow file."""
    return new_class("Dataflow", (Topology,), {}, lambda body: body.update(specs(read_dataflow(file)), config=CONFIG))


if VARIABLE not in os.environ:
    raise ConfigError(
        f"{VARIABLE} is not set.", remedy="Name the file of a dataflow in it; see topologies/dataflow.py."
    )
Dataflow = topology(Path(os.environ[VARIABLE]))
