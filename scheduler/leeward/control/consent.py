"""The decisions of people that a service keeps to: a freeze, the approval of a proposal, the way back.

A proposal holds in the epoch and the deployment for which it was made. It expires, and the log says why, when one of
them has changed, when the guard refuses it by now, or when the policy wants something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from leeward.control.guard import by_hand, changes_nothing, check_plan, would_lose
from leeward.control.limits import over_limits
from leeward.control.ports import ControlStore
from leeward.core.errors import LeewardError, PlanError
from leeward.core.journal import Journal, StepName
from leeward.core.model import ClusterView
from leeward.core.outcome import DONE
from leeward.core.placing import present_deployment
from leeward.core.plan import Estimate, Plan, deployment, diff
from leeward.core.settings import Settings
from leeward.core.standing import Proposal, Standing

Emit = Callable[[str, Mapping[str, object]], None]
Replicas = dict[str, dict[str, int]]


def frozen_why(topology: str, standing: Standing | None) -> str:
    """Why nothing is carried out; empty if the topology is not frozen. `standing`: None, if nobody has decided yet."""
    if standing is None or not standing.frozen:
        return ""
    why = f": {standing.why}" if standing.why else ""
    return f"the topology is frozen{why} (leeward freeze {topology} --undo)"


class Consent:
    """See the module. `emit`: where events go."""

    def __init__(self, *, topology: str, store: ControlStore, settings: Settings, emit: Emit) -> None:
        self._topology, self._store, self._settings, self._emit = topology, store, settings, emit
        self.standing = Standing()

    def load(self) -> None:
        """A term begins: as the predecessor left it, and told again to those that hear this service alone."""
        self.standing = self._store.read_standing() or Standing()
        if self.standing.frozen:
            self._emit("frozen", {"why": self.standing.why})
        if self.standing.proposal is not None:
            self._tell(self.standing.proposal)

    def _write(self, **changes: object) -> None:
        """Decisions that cannot be read stay in the store for the release that can, until a person decides anew."""
        standing = replace(self.standing, **changes)  # type: ignore[arg-type]
        if standing != self.standing:
            if not standing.unreadable:
                self._store.write_standing(standing)
            self.standing = standing

    # --- a freeze

    def objection(self) -> str:
        """Why nothing is carried out; empty if it is not frozen."""
        return frozen_why(self._topology, self.standing)

    def freeze(self, on: bool, why: str, now: float) -> str:
        """Freeze it, or undo that; gives a sentence for people on the change."""
        if not on and not self.standing.frozen:
            return "it is not frozen"
        if on and self.standing.frozen and self.standing.why == why:
            return "it is frozen already"
        self._write(frozen=on, why=why if on else "", since=now if on else 0.0, unreadable=False)
        self._emit("frozen" if on else "thawed", {"why": why})
        return "frozen: nothing is carried out but recovery from losses" if on else "plans are carried out again"

    def freeze_after(self, request: str, why: str) -> None:
        """Freeze it when the reconfiguration that this request asks for was carried out, by this leader or the next."""
        self._write(freeze_by=request, freeze_why=why)

    # --- a proposal

    def propose(self, plan: Plan, view: ClusterView, now: float) -> None:
        """Keep a plan that has passed the guards; one that wants the deployment of the waiting one changes nothing."""
        after = deployment(plan.tables, plan.placement)
        waiting, number = self.standing.proposal, self.standing.proposals + 1
        if waiting is not None and waiting.epoch == view.epoch and _plain(waiting.after) == after:
            return
        if waiting is not None:
            self._expired(waiting, f"the policy proposes plan {number} by now")
        estimate, gain = plan.estimate, None
        if estimate.objective is not None and estimate.objective_now is not None:
            gain = estimate.objective_now - estimate.objective
            gain = gain if math.isfinite(gain) else None  # the present deployment breaks a bound
        proposal = Proposal(
            number=number, epoch=view.epoch, made_at=now, reason=plan.reason,
            before=present_deployment(view) or {}, after=after, tables=plan.tables, slots=plan.placement,
            gain=gain, cost_per_h=estimate.cost_per_h, cost_now_per_h=estimate.cost_now_per_h,
            downtime_s=estimate.downtime_s,
        )  # fmt: skip
        self._write(proposal=proposal, proposals=number)
        self._tell(proposal)

    def _tell(self, proposal: Proposal) -> None:
        number, after = proposal.number, _plain(proposal.after)
        fields = {"plan": number, "epoch": proposal.epoch, "reason": proposal.reason, "deployment": after}
        self._emit("plan_proposed", fields | {"remedy": f"leeward approve {self._topology} --plan {number}"})

    def unwanted(self) -> None:
        """The policy wants no change by now."""
        self._drop("the policy wants no change by now")

    def look(self, view: ClusterView) -> None:
        """Let the proposal expire if it does not hold in this view."""
        proposal = self.standing.proposal
        why = self._why_void(proposal, view) if proposal is not None else ""
        if why:
            self._drop(why)

    def approved(self, number: int, view: ClusterView) -> Plan:
        """The plan that is to be carried out. `number`: 0 is the one that waits. Raises PlanError, with the reason."""
        proposal = self.standing.proposal
        if proposal is None:
            raise PlanError("no plan waits for approval.", remedy="See the log for why the last one expired.")
        if number not in (0, proposal.number):
            raise PlanError(f"plan {number} does not wait.", remedy=f"Plan {proposal.number} does.")
        why = self._why_void(proposal, view)
        if why:
            self._drop(why)
            raise PlanError(f"plan {proposal.number} has expired: {why}.", remedy="Wait for the next one.")
        return _plan_of(proposal)

    def taken(self) -> None:
        """The proposal is being carried out."""
        self._write(proposal=None)

    def _why_void(self, proposal: Proposal, view: ClusterView) -> str:
        if proposal.epoch != view.epoch:
            return f"it was made in epoch {proposal.epoch}, epoch {view.epoch} is in force"
        if _plain(proposal.before) != (present_deployment(view) or {}):
            return "the replicas are on other nodes by now"
        plan = _plan_of(proposal)
        if changes_nothing(plan, view):
            return "the topology is as proposed"
        try:
            check_plan(plan, view)
        except LeewardError as error:
            return str(error).rstrip(".")
        return would_lose(plan, view) or over_limits(plan, view, self._settings)

    def _drop(self, why: str) -> None:
        proposal = self.standing.proposal
        if proposal is not None:
            self._write(proposal=None)
            self._expired(proposal, why)

    def _expired(self, proposal: Proposal, why: str) -> None:
        self._emit("proposal_expired", {"plan": proposal.number, "why": why})

    # --- the way back

    def ended(self, journal: Journal) -> None:
        """A reconfiguration is over; if it was carried out, the deployment before it is the one to go back to."""
        before, after = carried_out(journal)
        if before != after:
            self._write(before=before)
        if self.standing.freeze_by and self.standing.freeze_by == journal.request:
            self._freeze_by(journal)

    def _freeze_by(self, journal: Journal) -> None:
        why, over = self.standing.freeze_why, {"freeze_by": "", "freeze_why": ""}
        if journal.result != DONE:
            self._write(**over)
            return
        self._write(frozen=True, why=why, since=journal.times.get(StepName.CLOSED, 0.0), **over)
        self._emit("frozen", {"why": why})

    def back(self, view: ClusterView) -> Plan:
        """The plan for the deployment before the last reconfiguration. Raises PlanError if it cannot be had."""
        before = _plain(self.standing.before)
        if not before:
            raise PlanError("no reconfiguration is known to go back behind.", remedy="See leeward reconfigure.")
        gone = {node for counts in before.values() for node in counts} - {node.id for node in view.nodes}
        if gone:
            raise PlanError(
                f"the deployment before has replicas on {sorted(gone)}, and no supervisor runs there.",
                remedy="Bring them back, or see leeward reconfigure.",
            )
        return replace(by_hand(before, view), reason="back to the deployment before, asked for by hand")


def carried_out(journal: Journal) -> tuple[Replicas, Replicas]:
    """Component -> node -> replicas before and after a plan that was carried out; empty of any other journal."""
    if journal.kind not in ("handover", "restart") or journal.result != DONE:
        return {}, {}
    slots = {**journal.old_slots, **journal.new_slots}
    owners = {task for tables in (journal.old_tables, journal.new_tables) for t in tables.values() for task in t}
    if not owners <= journal.old_slots.keys():
        return {}, {}
    return deployment(journal.old_tables, journal.old_slots), deployment(journal.new_tables, slots)


def left_by(journal: Journal) -> Replicas:
    """Of each component that a plan has changed, the replicas by node before; empty if none was carried out."""
    return {change.component: dict(change.before) for change in diff(*carried_out(journal))}


def _plan_of(proposal: Proposal) -> Plan:
    """With the costs by which its policy and the guard weighed it."""
    estimate = Estimate(cost_per_h=proposal.cost_per_h, cost_now_per_h=proposal.cost_now_per_h)
    reason = f"{proposal.reason} (approved by hand)"
    return Plan(tables=proposal.tables, placement=proposal.slots, reason=reason, estimate=estimate)


def _plain(placed: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(counts) for name, counts in placed.items()}
