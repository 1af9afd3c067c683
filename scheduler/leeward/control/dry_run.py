"""A dry run of a policy: the plan that it would make for a view, what the guards say to it, and its way.

Nothing is carried out. `leeward plan` and the HTTP API tell the same document.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from leeward.control.consent import frozen_why
from leeward.control.guard import by_hand, changes_nothing
from leeward.control.limits import check_limits
from leeward.control.loop import ask, finite, plan_fields, refusal
from leeward.control.ports import Post
from leeward.control.preview import preview
from leeward.control.registry import Policies
from leeward.core.errors import ConfigError, PlanError
from leeward.core.keys import GROUPS
from leeward.core.learnt_told import learnt_by, sentence
from leeward.core.model import ClusterView
from leeward.core.peers import Directory
from leeward.core.plan import Plan
from leeward.core.settings import Chosen, Settings
from leeward.core.standing import Standing


def dry_run(
    view: ClusterView, chosen: Chosen, *, now: float, frozen: bool, post: Callable[[Directory], Post]
) -> dict[str, Any]:
    """The document of `leeward plan`. `now`: s since 1970; `post`: opens the way to the peers of a policy that asks
    some. Raises ConfigError, and what the policy raises.
    """
    settings = chosen.of(view.topology).service
    policy = Policies(chosen, post).of(view.topology)
    if policy is None:
        raise ConfigError("setting 'policy' is 'none'.", remedy="Name a policy: -o policy=edrp.")
    plan = ask(policy, view, now=now, rng=random.Random(settings.seed))
    return plan_document(plan, view, settings, frozen=frozen)


def plan_document(plan: Plan, view: ClusterView, settings: Settings, *, frozen: bool) -> dict[str, Any]:
    """A plan, whether the guards let it through, and how it would be carried out. Pure."""
    about = {"topology": view.topology, "policy": settings.policy, "approval": settings.approval}
    fields = plan_fields(plan, view) | learnt_by(view)
    if view.rest is not None and plan.estimate.response_s is not None:
        whole_s = max(0.0, plan.estimate.response_s + view.rest.seconds)
        fields["response_with_rest_s"] = finite(round(whole_s, 6))
    if changes_nothing(plan, view):
        return about | {"change": False, "refused": "", **fields}
    refused = "the topology is frozen" if frozen else refusal(plan, view, settings)
    document = about | {"change": not refused, "refused": refused, **fields}
    return document | (preview(plan, view) if _whole(plan, view) else {})


def _whole(plan: Plan, view: ClusterView) -> bool:
    """It says enough for a preview: an owner for each key group, and a slot for each task."""
    owners = {task for table in plan.tables.values() for task in table}
    lengths = {name: len(table) for name, table in plan.tables.items()}
    return lengths == dict.fromkeys(view.tables, GROUPS) and owners | view.assignment.keys() <= plan.placement.keys()


def preview_by_hand(
    view: ClusterView, wanted: Mapping[str, Mapping[str, int]], settings: Settings, standing: Standing | None, *,
    force: bool = False,
) -> dict[str, object]:  # fmt: skip
    """How a reconfiguration to these replicas would go; component -> node -> replicas. Pure.

    Raises PlanError for one that would be refused.
    """
    frozen = frozen_why(view.topology, standing)
    if frozen:
        raise PlanError(f"{frozen}.")
    plan = by_hand(wanted, view, force=force)
    check_limits(plan, view, settings)
    return preview(plan, view) | {"learnt": sentence(view)}


def no_letters(_: Directory) -> Post:
    """A `post` for dry runs that may not write to peers. Raises ConfigError."""
    raise ConfigError(
        "this policy asks peers, and this dry run may not write to them.",
        remedy="Use leeward plan where the service runs.",
    )
