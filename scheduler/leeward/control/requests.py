"""Requests of people to the service of one topology, from wherever they come: one at a time, each with an answer.

    {"replicas": {component: {node: count}}, "force": bool}   a deployment, of some components or of all
    {"rollback": true, "freeze": text}                         the deployment before the last reconfiguration
    {"approve": number}                                        the plan that waits; 0 is the one that does
    {"freeze": bool, "why": text}                              nothing is carried out, or plans are again
    {"recover": cut}                                           of a topology that is held; 0 is from empty state

A plan by hand passes the guards for safety, the freeze, and the limits of one plan. Cool-down, least gain and delays
are for policies: a person may be in a hurry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Protocol

from leeward.control.consent import Consent
from leeward.control.coordinator import Coordinator
from leeward.control.deployment_document import replicas_of
from leeward.control.guard import by_hand, changes_nothing
from leeward.control.limits import check_limits
from leeward.control.ports import RequestStore
from leeward.control.room import no_room, not_placed
from leeward.core.errors import LeewardError, PlanError
from leeward.core.model import ClusterView
from leeward.core.orders import State
from leeward.core.outcome import Ending, Outcome, refused
from leeward.core.plan import Plan
from leeward.core.settings import Settings

#: A request waits so long for tasks that are away, seconds.
AWAY_S = 60.0
#: Between two tries of a request that waits for something, seconds.
AGAIN_S = 1.0


class Submitted(StrEnum):
    """A plan that was to be carried out."""

    BEGUN = "begun"  #: it may have ended at once, too
    REFUSED = "refused"  #: the requester has the reason
    WAITS = "waits"  #: for its turn


class Led(Protocol):
    """The term that leads the topology, as far as requests go."""

    coordinator: Coordinator | None

    def view(self) -> ClusterView:
        """To plan by, at this moment. Raises NotReadyError."""

    def submit(self, coordinator: Coordinator, plan: Plan, now: float, request: str = "") -> Submitted:
        """Begin to carry it out, or refuse the request."""


class Requests:
    """See the module. `emit`: where events go."""

    def __init__(
        self, *, led: Led, store: RequestStore, consent: Consent, settings: Settings,
        emit: Callable[[str, Mapping[str, object]], None],
    ) -> None:  # fmt: skip
        self._led, self._store, self._consent, self._settings, self._emit = led, store, consent, settings, emit
        self._away_since: float | None = None
        self._asked = True
        self._not_before = 0.0
        self._wake = self._came  # one object, so that watches do not pile up

    def look_again(self) -> None:
        """One may have come that was not looked at."""
        self._asked = True

    def _came(self) -> None:
        self._asked = True
        if self._led.coordinator is not None:
            self._led.coordinator.wake()

    def serve(self, coordinator: Coordinator, now: float) -> None:
        """Begin with the request that waits, or say why not."""
        if not self._asked or now < self._not_before:
            return
        self._asked = False  # before looking: a request that comes from here on sets it again
        request = self._store.pending(self._wake)
        if request is None:
            return
        self._asked = True  # there may be another behind it
        name = str(request["id"])
        why = self._not_now(coordinator, request, now)
        if why is not None:
            if why:
                self._store.answer(name, refused(str(why)))
            return
        answer = self._without_plan(coordinator, request, now)
        if answer is not None:
            self._store.answer(name, answer)
        else:
            self._carry_out(coordinator, request, now)

    def _without_plan(self, coordinator: Coordinator, request: Mapping[str, object], now: float) -> Outcome | None:
        """The answer to a request that is no plan; None if it is one."""
        if "recover" in request:
            return self._recover(coordinator, request["recover"])
        if "freeze" in request and "rollback" not in request:
            told = self._consent.freeze(bool(request["freeze"]), str(request.get("why") or ""), now)
            return Outcome(Ending.DONE, told)
        return None

    def _carry_out(self, coordinator: Coordinator, request: Mapping[str, object], now: float) -> None:
        name = str(request["id"])
        try:
            plan, view = self._plan_of(request)
        except LeewardError as error:
            self._emit("plan_refused", {"why": str(error), "request": name})
            self._store.answer(name, refused(str(error)))
            return
        freeze = str(request["freeze"]) if request.get("rollback") and request.get("freeze") else ""
        if changes_nothing(plan, view):
            if freeze:
                self._consent.freeze(True, freeze, now)
            self._store.answer(name, Outcome(Ending.DONE, "nothing to change"))
        else:
            if freeze:
                self._consent.freeze_after(name, freeze)
            submitted = self._led.submit(coordinator, plan, now, name)
            if submitted is Submitted.WAITS:
                self._not_before = now + AGAIN_S
            if submitted is not Submitted.BEGUN:
                return
        if "approve" in request:
            self._consent.taken()

    def _plan_of(self, request: Mapping[str, object]) -> tuple[Plan, ClusterView]:
        """Raises PlanError for one that would be refused."""
        view = self._led.view()
        frozen = self._consent.objection()
        if frozen:
            raise PlanError(f"{frozen}.")
        why = self._why_unplaced(view)
        if why:
            raise PlanError(f"{why}.", remedy="End a topology, add a supervisor, or wait; see leeward status.")
        if "approve" in request:
            return self._consent.approved(_number(request["approve"]), view), view
        plan = self._consent.back(view) if request.get("rollback") else self._deployment(request, view)
        check_limits(plan, view, self._settings)
        return plan, view

    def _deployment(self, request: Mapping[str, object], view: ClusterView) -> Plan:
        replicas = replicas_of(request.get("replicas"))
        self._check_room({node for counts in replicas.values() for node in counts})
        return by_hand(replicas, view, force=bool(request.get("force")))

    def _not_now(self, coordinator: Coordinator, request: Mapping[str, object], now: float) -> str | None:
        """Why a request cannot be served: "" if it may wait a little longer; None if it can."""
        machine = coordinator.machine
        if "recover" in request or ("freeze" in request and "rollback" not in request):
            return None
        if machine.state is State.HELD:
            self._away_since = None
            return "the topology is held, as no cut can be read; see leeward status and leeward recover."
        if not machine.away:
            self._away_since = None
            return None
        since = now if self._away_since is None else self._away_since
        self._away_since = since if now - since < AWAY_S else None  # the next request waits as long
        if self._away_since is not None:
            return ""
        names = machine.named(machine.away)
        return f"tasks are away since {now - since:.0f} s: {names}. Ask again when they are back."

    def _recover(self, coordinator: Coordinator, cut: object) -> Outcome:
        """A person decides from where a topology that is held goes on; the answer."""
        machine = coordinator.machine
        if machine.state is not State.HELD:
            return refused(f"the topology is not held: it is {machine.state}.")
        if not isinstance(cut, int) or (cut and cut not in machine.record.committed):
            return refused(f"cut {cut!r} is none of {list(machine.record.committed)}.")
        coordinator.choose(cut)
        where = f"cut {cut}" if cut else "from empty state, sources from their beginning"
        return Outcome(Ending.DONE, f"restoring {where}")

    def _why_unplaced(self, view: ClusterView) -> str:
        snapshot = self._led.coordinator.snapshot if self._led.coordinator else None
        tasks = frozenset(task for component in view.components for task in component.tasks)
        return not_placed(snapshot, tasks) if snapshot else ""

    def _check_room(self, nodes: Collection[str]) -> None:
        """Raises PlanError for a node whose slots other topologies use."""
        snapshot = self._led.coordinator.snapshot if self._led.coordinator else None
        for node in sorted(nodes):
            why = no_room(snapshot, node) if snapshot else ""
            if why:
                raise PlanError(f"node {node!r}: {why}.", remedy="Name another node, or end one of them.")


def _number(value: object) -> int:
    """Of a proposal; raises PlanError for what is none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise PlanError(f"the request approves plan {value!r}.", remedy="Give its number, or 0 for the one that waits.")
    return value
