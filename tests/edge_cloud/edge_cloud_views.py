"""Views of dataflows as the loop shows them to the policy, and plans carried out on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leeward.core.keys import GROUPS
from leeward.core.model import ClusterView, Node
from leeward.core.network import Network
from leeward.core.plan import Plan
from leeward.policies.edge_cloud.facts import components_of, dataflow_of
from leeward.policies.edge_cloud.model.dataflow import Dataflow


def view_of(dataflow: Dataflow, nodes: tuple[Node, ...], network: Network | None = None) -> ClusterView:
    """A topology that was submitted and is not placed."""
    components = components_of(dataflow, [node.id for node in nodes])
    return ClusterView(
        topology=dataflow.name,
        topology_id=f"{dataflow.name}-1",
        epoch=0,
        nodes=nodes,
        components=components,
        streams=tuple((components[u].id, components[v].id) for u, v in sorted(dataflow.edges)),
        tables={component.id: component.tasks * GROUPS for component in components},
        assignment={},
        network=network,
        first=True,
    )


def flow_of(view: ClusterView, numbers: Mapping[str, int]) -> Dataflow:
    """The dataflow that the policy reads from a view; `numbers`: node -> resource."""
    return dataflow_of(view.topology, view.components, view.streams, numbers)


def carried_out(view: ClusterView, plan: Plan) -> ClusterView:
    """The view after its plan."""
    return replace(view, tables=plan.tables, assignment=plan.placement, first=False)


def places(view: ClusterView) -> dict[str, str]:
    """Component -> node of its replica."""
    return {component.id: view.assignment[view.tables[component.id][0]].node for component in view.components}
