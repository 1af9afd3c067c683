"""A deployment as a document: how many replicas of each component on which node. Pure.

    topology: query1
    deployment:
      route: {node1: 1, node2: 2}

Components that it does not name stay as they are. `leeward status --output json` has both keys, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.core.errors import PlanError
from leeward.core.plan import diff

KEYS = ("topology", "deployment")
#: Keys of a status on the values that the service has learnt, by which it plans.
LEARNT = ("learnt", "learnt_age_s")


def read_deployment(document: object) -> tuple[str, dict[str, dict[str, int]]]:
    """Topology, and component -> node -> replicas. Raises PlanError naming key, value and remedy."""
    if not isinstance(document, Mapping):
        raise PlanError(f"the document is {document!r}.", remedy=f"Write the keys {' and '.join(KEYS)}.")
    for key in document:
        if key not in KEYS:
            raise PlanError(f"the document has unknown key {key!r}.", remedy=f"Write {' and '.join(KEYS)} alone.")
    topology = document.get("topology")
    if not isinstance(topology, str) or not topology:
        raise PlanError(f"key 'topology' is {topology!r}.", remedy="Give the name of a running topology.")
    return topology, replicas_of(document.get("deployment"))


def replicas_of(value: object) -> dict[str, dict[str, int]]:
    """Component -> node -> replicas, each at least 1. Raises PlanError for another shape."""
    if not isinstance(value, Mapping) or not value:
        raise PlanError(f"the deployment is {value!r}.", remedy="Write component: {node: count}.")
    found: dict[str, dict[str, int]] = {}
    for name, counts in value.items():
        if not isinstance(name, str) or not isinstance(counts, Mapping) or not counts:
            raise PlanError(f"the deployment of {name!r} is {counts!r}.", remedy="Write {node: count}.")
        for node, count in counts.items():
            if not isinstance(node, str) or type(count) is not int or count < 1:
                raise PlanError(
                    f"the deployment of {name!r} has {count!r} replicas on {node!r}.",
                    remedy="Give the node's name and a whole number of at least 1.",
                )
        found[name] = dict(counts)
    return found


def diff_document(status: Mapping[str, Any], wanted: Mapping[str, Mapping[str, int]] | None) -> dict[str, Any]:
    """The document of `leeward diff`, from that of `leeward status`. `wanted`: None is the proposal."""
    present, proposal = status["deployment"] or {}, status["proposal"]
    after = {**present, **(wanted if wanted is not None else proposal.get("deployment", {}))}
    changes = [
        {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
        for c in diff(present, after)
    ]
    document = {"topology": status["topology"], "epoch": status["epoch"], "present": present, "wanted": after}
    document |= {name: status[name] for name in LEARNT if name in status}
    if wanted is None:
        document |= {"plan": proposal.get("plan"), "reason": proposal.get("reason", "no plan waits for approval")}
        document |= {name: proposal.get(name) for name in ("gain", "cost_per_h", "downtime_s")}
        if proposal and proposal["epoch"] != status["epoch"]:
            document["expired"] = f"it was made in epoch {proposal['epoch']}"
    return document | {"changes": changes}
