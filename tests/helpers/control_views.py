"""Small cluster views for tests of policies and of the loop."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.model import ClusterView, Component, Measured, Node
from leeward.core.plan import Slot
from leeward.core.table import even_table


def node(name: str, *, ports=(1, 2), capacity=8, draining=False, **meta) -> Node:
    return Node(id=name, ports=tuple(ports), capacity=capacity, draining=draining, meta=meta)


def view(
    *,
    rate: float = 100.0,
    work: tuple[int, ...] = (2,),
    mu: float = 150.0,
    nodes: tuple[Node, ...] | None = None,
    pinned: tuple[str, ...] = (),
    queued: int = 0,
    first: bool = False,
    **changes,
) -> ClusterView:
    """source 1 -> work 2,3,4 -> sink 5; source and task 2 on n1, 3 on n2, 4 on n3, sink on n1, each on port 1."""
    nodes = nodes or tuple(node(f"n{i}") for i in (1, 2, 3))
    at = {1: "n1", 2: "n1", 3: "n2", 4: "n3", 5: "n1"}
    base = ClusterView(
        topology="app",
        topology_id="app-1-1",
        epoch=3,
        nodes=nodes,
        components=(
            Component(id="sink", tasks=(5,), stateful=True, max_replicas=1),
            Component(id="source", tasks=(1,), stateful=False, source=True, max_replicas=1),
            Component(id="work", tasks=(2, 3, 4), stateful=True, max_replicas=3, pinned=pinned),
        ),
        streams=(("source", "work"), ("work", "sink")),
        tables={"source": even_table([1]), "work": even_table(work), "sink": even_table([5])},
        assignment={task: Slot(name, 1) for task, name in at.items()},
        measured={
            "source": Measured(arrival_rate=rate, service_rate=1000.0, queued=queued),
            "work": Measured(arrival_rate=rate, service_rate=mu, state_bytes=1000),
            "sink": Measured(arrival_rate=10.0, service_rate=3000.0),
        },
        stream_rate={("source", "work"): rate, ("work", "sink"): 10.0},
        first=first,
    )
    return replace(base, **changes)
