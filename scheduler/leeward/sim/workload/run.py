"""The loop: topologies come and go, the policy decides about all of them, its plans are in force at once.

As in the paper on edge and cloud, the policy is asked once in each control interval, after the arrivals and departures
of that interval. A topology that it refuses, or gives no plan, does not run, and is not shown again. Plans pass the
check that the service's loop makes (`control.guard`); a refusal of a topology that runs leaves it as it runs.

A run goes on from its rows: arrivals and departures are drawn again, and each row has the slots that were decided. The
policy is then shown the topologies as they run, as after a restart of the service, before it is asked on. The rows are
those of a run without the break, but for the time that planning takes, if the policy decides by its views and `rng` and
moves nothing while nothing comes or goes. A policy that does move something then is refused, as its rows would differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from leeward.control.guard import check_plan
from leeward.core.errors import PlanError
from leeward.core.fields import FieldError
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Refusal
from leeward.core.policy import JointPolicy
from leeward.core.table import even_table
from leeward.core.workload import Arriving, Interval, Running, Slots, Workload
from leeward.sim.workload.arrivals import Arrive, Step

#: The policy's `now` goes by this, s.
INTERVAL_S = 60.0
#: Said of a topology about which the policy said nothing.
UNANSWERED = "the policy gave no plan"


def play(
    workload: Workload,
    policy: JointPolicy,
    steps: Sequence[Step],
    *,
    seed: int,
    clock: Callable[[], float],
    done: Sequence[Interval] = (),
) -> Iterator[Interval]:
    """The rows of a run, each when its interval is over; after those that are `done`.

    `clock`: seconds, for the time that planning takes. Raises PlanError for a plan that cannot be carried out,
    `FieldError` for rows of other arrivals, and the errors of the policy.
    """
    active = _Active(workload, seed)
    for row, step in zip(done, steps, strict=False):
        active.redo(row, step)
    if active.views and len(done) < len(steps):
        now, rng = len(done) * INTERVAL_S, Random(f"{seed}:resumed")
        active.check_quiet(policy.decide_all(active.shown(), now=now, rng=rng))
    for interval in range(len(done), len(steps)):
        yield _interval(active, policy, interval, steps[interval], clock)


def _interval(active: _Active, policy: JointPolicy, interval: int, step: Step, clock: Callable[[], float]) -> Interval:
    before = dict(active.running)
    active.take(step)
    shown, rng = active.shown(), Random(f"{active.seed}:{interval}")
    began = clock()
    answers = policy.decide_all(shown, now=interval * INTERVAL_S, rng=rng)
    plan_s = clock() - began
    placed, refused = active.carry_out(answers)
    moves = sum(_moves(before[name], active.running[name]) for name in placed if name in before)
    figures = active.workload.measure(active.running)
    arrived, departed = _names(step)
    return Interval(
        interval=interval,
        arrived=arrived,
        departed=departed,
        refused=refused,
        active=len(active.running),
        makespan_s=figures.makespan_s,
        violations=figures.violations,
        moves=moves,
        stabilization_s=active.workload.stabilization_s(before, active.running) if moves else 0.0,
        plan_s=plan_s,
        placed=placed,
    )


def _names(step: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    arrived = tuple(event.topology for event in step if isinstance(event, Arrive))
    return arrived, tuple(event.topology for event in step if not isinstance(event, Arrive))


def _moves(before: Running, after: Running) -> int:
    return sum(after.places[component] != node for component, node in before.places.items())


class _Active:
    """The topologies that run, in the order of arrival: a view of each, replaced when its placement changes."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self.workload, self.seed = workload, seed
        self.views: dict[str, ClusterView] = {}
        self.running: dict[str, Running] = {}
        self._arriving: dict[str, Arriving] = {}
        self._nodes, self._network = workload.nodes, workload.network

    def shown(self) -> tuple[ClusterView, ...]:
        """Those that the policy is asked about."""
        return tuple(self.views.values())

    def take(self, step: Step) -> None:
        """Topologies come, without a place, and go."""
        for event in step:
            if isinstance(event, Arrive):
                self._arrive(event)
            else:
                self._leave(event.topology)

    def _arrive(self, event: Arrive) -> None:
        name = event.topology
        arriving = self.workload.arriving(event.entry, name, Random(f"{self.seed}:{name}"))
        self._arriving[name] = arriving
        self.views[name] = self._view(name, arriving)

    def _leave(self, name: str) -> None:
        """Nothing happens if it was refused."""
        self.views.pop(name, None)
        self.running.pop(name, None)
        self._arriving.pop(name, None)

    def _view(self, name: str, arriving: Arriving) -> ClusterView:
        for component in arriving.components:
            if len(component.tasks) != 1:
                reason, remedy = "a component has one task here", "give each one task of its own"
                raise FieldError(f"topology {name}: {component.id}.tasks", list(component.tasks), reason, remedy=remedy)
        return ClusterView(
            topology=name,
            topology_id=f"{name}-1",
            epoch=0,
            nodes=self._nodes,
            components=arriving.components,
            streams=arriving.streams,
            tables={component.id: even_table(component.tasks) for component in arriving.components},
            assignment={},
            network=self._network,
            first=True,
        )

    def carry_out(self, answers: Mapping[str, Plan | Refusal]) -> tuple[dict[str, Slots], dict[str, str]]:
        """Topologies that got other slots, and those that are refused, with the reason. Raises PlanError."""
        for name in sorted(answers.keys() - self.views.keys()):
            raise PlanError(
                f"the policy answers about topology {name!r}, which was not shown.",
                remedy="Answer about the views of this question alone.",
            )
        placed: dict[str, Slots] = {}
        refused: dict[str, str] = {}
        for name, view in tuple(self.views.items()):
            answer = answers.get(name)
            if isinstance(answer, Plan):
                slots = _slots(answer, view)
                if slots is not None:
                    placed[name] = slots
                    self.place(name, slots)
            elif view.first:
                refused[name] = UNANSWERED if answer is None else answer.reason
                self._leave(name)
        return placed, refused

    def check_quiet(self, answers: Mapping[str, Plan | Refusal]) -> None:
        """Raises PlanError if the policy moves something though nothing came or went."""
        for name, answer in answers.items():
            if isinstance(answer, Plan) and _slots(answer, self.views[name]) is not None:
                raise PlanError(
                    f"the policy moves topology {name!r} though nothing came or went, so a run that was broken off "
                    "would not give the rows of one that was not.",
                    remedy="Begin anew, with another file of rows.",
                )

    def place(self, name: str, slots: Slots) -> None:
        """The topology runs in these slots."""
        view = self.views[name]
        self.views[name] = replace(
            view,
            epoch=view.epoch + 1,
            assignment={component.tasks[0]: slots[component.id] for component in view.components},
            first=False,
        )
        places = {component: slot.node for component, slot in slots.items()}
        self.running[name] = Running(arriving=self._arriving[name], places=places)

    def redo(self, row: Interval, step: Step) -> None:
        """An interval whose row is there; raises `FieldError` if it is not one of this run."""
        field = f"rows[{row.interval}]"
        if (row.arrived, row.departed) != _names(step):
            raise _foreign(
                f"{field}.arrived", [*row.arrived, *row.departed], "other topologies come and go in this run"
            )
        self.take(step)
        for name in row.refused:
            self._leave(name)
        for name, slots in row.placed.items():
            if name not in self.views or slots.keys() != {component.id for component in self.views[name].components}:
                raise _foreign(f"{field}.placed", name, "no topology with these components runs then")
            self.place(name, slots)
        if self.views.keys() != self.running.keys():
            lost = sorted(self.views.keys() - self.running.keys())
            raise _foreign(f"{field}.placed", lost, "these topologies arrived and have no places")


def _foreign(field: str, value: object, reason: str) -> FieldError:
    return FieldError(field, value, reason, remedy="name another file, or take the version of Leeward that wrote it")


def _slots(plan: Plan, view: ClusterView) -> Slots | None:
    """The slots that a plan wants; None if it changes nothing. Raises PlanError naming topology, field and value."""
    if plan.placement == view.assignment and not view.first:
        return None
    try:
        check_plan(plan, view)
    except PlanError as error:
        raise PlanError(f"topology {view.topology!r}: {error.message}", remedy=error.remedy) from None
    return {component.id: plan.placement[component.tasks[0]] for component in view.components}
