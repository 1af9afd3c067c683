"""A given instance: the cheapest map, by the decentralised exhaustive search and by the one over the whole network."""

from __future__ import annotations

import random
from typing import Any

from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.play import TooManyError, agents_of, map_task
from leeward.policies.bimodal.mapping.rules import Exhaustive, Method, cost_choice
from leeward.policies.bimodal.model.document import Instance
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import Walk, paths_of, servers_of

#: The exhaustive search is only possible in tiny networks.
MOST = 300_000


def evaluate(instance: Instance) -> dict[str, Any]:
    """`per_edge`: each use of a link is checked alone; `aggregated`: all uses by the task together. None: no map.

    Costs of `per_edge` come from the messages; `exact` beside it is the search's, and alone where there would be too
    many messages.
    """
    task, network = instance.task, instance.network
    alone, together = (cheapest(task, network, aggregated=aggregated) for aggregated in (False, True))
    walk, messages = _by_messages(task, network)
    per_edge = _document(walk if messages else alone.walk, task)
    if per_edge is not None:
        per_edge |= {"exact": alone.cost, "messages": messages}
    return {"per_edge": per_edge, "aggregated": _document(together.walk, task)}


def _by_messages(task: Task, network: Network) -> tuple[Walk | None, int | None]:
    """The best map by messages, and how many there were; (None, None) if there were too many."""
    first: list[Walk] = []

    def look(walks: Any) -> list[Walk]:
        first.extend(cost_choice(walks)[:1])
        return []  # nothing is to be reserved

    agents = agents_of(network, Method(rule=Exhaustive(), choice=look, aggregated=False))
    try:
        mapped = map_task(agents, task, now=0.0, rng=random.Random(0), most=MOST)
    except TooManyError:
        return None, None
    return (first[0] if first else None), mapped.messages.total()


def _document(walk: Walk | None, task: Task) -> dict[str, Any] | None:
    if walk is None:
        return None
    paths = [[sorted(hop) for hop in path] for path in paths_of(walk, task)]
    return {"cost": walk.cost, "servers": list(servers_of(walk)), "paths": paths}
