"""Topologies come and go: the policy sees those that run, its plans hold at once, and a run can be broken off."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.errors import PlanError
from leeward.core.fields import FieldError
from leeward.core.keys import GROUPS
from leeward.core.model import ClusterView
from leeward.core.placing import carry
from leeward.core.plan import Plan, Refusal, Slot
from leeward.core.workload import Interval
from leeward.sim.workload.arrivals import Arrive, Depart, Step, poisson, random_walk
from leeward.sim.workload.run import INTERVAL_S, UNANSWERED, play
from tests.sim.toy_workload import SIZES, Chains, Least, LeastSettings

#: Entries of the catalogue, by their length.
ONE, TWO, THREE = 0, 1, 3


def came(name: str, entry: int) -> Step:
    return (Arrive(topology=name, entry=entry),)


def went(name: str) -> Step:
    return (Depart(topology=name),)


class Scripted:
    """Answers as it is told: for each question, topology -> nodes of its components, a refusal, or a plan."""

    def __init__(self, *answers: dict[str, Sequence[str] | Refusal | Plan]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[tuple[ClusterView, ...], float]] = []

    def decide_all(self, views, *, now, rng):
        self.asked.append((tuple(views), now))
        shown = {view.topology: view for view in views}
        return {
            name: answer if isinstance(answer, Plan | Refusal) else at(shown[name], answer)
            for name, answer in self._answers.pop(0).items()
        }


def at(view: ClusterView, nodes: Sequence[str]) -> Plan:
    return carry(view, {component.id: {node: 1} for component, node in zip(view.components, nodes, strict=True)})


def ticking():
    """A clock that is a second on at each look."""
    return itertools.count().__next__


def rows_of(
    policy, steps: Sequence[Step], *, done: Sequence[Interval] = (), nodes: int = 4, seed: int = 1
) -> list[Interval]:
    return list(play(Chains(nodes=nodes, seed=seed), policy, steps, seed=seed, clock=ticking(), done=done))


def pin_of(name: str, nodes: int = 4, seed: int = 1) -> str:
    """The node of its first component."""
    chain = Chains(nodes=nodes, seed=seed).arriving(ONE, name, random.Random(f"{seed}:{name}"))
    return chain.components[0].pinned[0]


def test_a_story_of_five_intervals():
    a, b = pin_of("a"), pin_of("b")
    other = next(node for node in ("n000", "n001", "n002") if node not in (a, b))
    policy = Scripted(
        {"a": [a, a, a]},
        {"b": [b, other], "a": [a, other, other]},
        {"c": Refusal(reason="no room")},
        {},
        {},
    )
    rows = rows_of(policy, [came("a", THREE), came("b", TWO), came("c", ONE), went("c"), went("a")])

    assert [row.interval for row in rows] == [0, 1, 2, 3, 4]
    assert [(row.arrived, row.departed) for row in rows] == [
        (("a",), ()), (("b",), ()), (("c",), ()), ((), ("c",)), ((), ("a",)),
    ]  # fmt: skip
    assert [row.active for row in rows] == [1, 2, 2, 2, 1]
    assert [dict(row.refused) for row in rows] == [{}, {}, {"c": "no room"}, {}, {}]
    assert [row.moves for row in rows] == [0, 2, 0, 0, 0]
    assert [row.stabilization_s for row in rows] == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert [row.plan_s for row in rows] == [1] * 5
    assert rows[0].makespan_s == pytest.approx(0.06)
    assert rows[4].makespan_s == pytest.approx(1.0)
    assert [set(row.placed) for row in rows] == [{"a"}, {"a", "b"}, set(), set(), set()]
    assert rows[1].placed["b"]["c1"].node == other


def test_the_policy_is_shown_the_topologies_that_run_and_the_new_one():
    a, b = pin_of("a"), pin_of("b")
    policy = Scripted({"a": [a, b]}, {"b": Refusal(reason="no")}, {}, {"c": [pin_of("c")]})
    rows_of(policy, [came("a", TWO), came("b", ONE), went("b"), came("c", ONE)])
    shown = [[view.topology for view in views] for views, _ in policy.asked]
    assert shown == [["a"], ["a", "b"], ["a"], ["a", "c"]]
    assert [now for _, now in policy.asked] == [0.0, INTERVAL_S, 2 * INTERVAL_S, 3 * INTERVAL_S]

    new, old = policy.asked[0][0][0], policy.asked[1][0][0]
    assert new.first and not old.first and (new.epoch, old.epoch) == (0, 1)
    assert new.assignment == {} and {task: slot.node for task, slot in old.assignment.items()} == {1: a, 2: b}
    assert old.tables == {"c0": (1,) * GROUPS, "c1": (2,) * GROUPS}
    assert old.network is not None and len(old.nodes) == 4 and old.streams == (("c0", "c1"),)
    assert policy.asked[2][0][0] is old, "a view is replaced only when its placement changes"


def test_each_question_has_random_numbers_of_its_own():
    class Drawing:
        def __init__(self):
            self.drawn = []

        def decide_all(self, views, *, now, rng):
            self.drawn.append(rng.random())
            return {}

    steps = [came("a", ONE), came("b", ONE), came("c", ONE)]
    draws = []
    for seed in (1, 1, 2):
        policy = Drawing()
        rows_of(policy, steps, seed=seed)
        draws.append(policy.drawn)
    assert len(set(draws[0])) == 3
    assert draws[0] == draws[1] != draws[2]


def test_violations_are_those_that_the_workload_finds():
    a = pin_of("a")
    [row] = rows_of(Scripted({"a": [a] * 5}), [came("a", SIZES.index(5))])
    assert row.violations == 1


def test_a_topology_without_an_answer_does_not_run():
    [row, after] = rows_of(Scripted({}, {}), [came("a", TWO), went("a")])
    assert row.refused == {"a": UNANSWERED} and row.active == 0
    assert after.active == 0


def test_a_refusal_of_a_topology_that_runs_leaves_it():
    a = pin_of("a")
    policy = Scripted({"a": [a, a]}, {"a": Refusal(reason="no more"), "b": [pin_of("b")]})
    rows = rows_of(policy, [came("a", TWO), came("b", ONE)])
    assert rows[1].active == 2 and rows[1].refused == {} and set(rows[1].placed) == {"b"}


def test_a_plan_that_changes_nothing_is_no_move():
    a = pin_of("a")
    rows = rows_of(Scripted({"a": [a, a]}, {"a": [a, a], "b": [pin_of("b")]}), [came("a", TWO), came("b", ONE)])
    assert rows[1].moves == 0 and set(rows[1].placed) == {"b"}


def unplaced(policy_answer) -> str:
    with pytest.raises(PlanError) as caught:
        rows_of(policy_answer, [came("a", TWO)])
    return str(caught.value)


def test_plans_that_cannot_be_carried_out_are_refused_by_topology():
    class Wrong:
        def __init__(self, change):
            self.change = change

        def decide_all(self, views, *, now, rng):
            plan = at(views[0], [views[0].components[0].pinned[0], "n000"])
            return {"a": self.change(plan)}

    lost = unplaced(Wrong(lambda plan: replace(plan, placement={**plan.placement, 2: Slot("n9", 6700)})))
    assert lost.startswith("topology 'a': plan puts task 2 on unknown node 'n9'. Supervisors run on")
    half = unplaced(Wrong(lambda plan: replace(plan, placement={1: plan.placement[1]})))
    assert half == "topology 'a': plan does not place task 2. Place every task of the topology."
    off = next(node for node in ("n000", "n001") if node != pin_of("a"))
    assert "it is pinned" in unplaced(
        Wrong(lambda plan: replace(plan, placement=dict.fromkeys((1, 2), Slot(off, 6700))))
    )


def test_an_answer_about_another_topology_is_refused():
    with pytest.raises(PlanError, match="answers about topology 'x', which was not shown"):
        rows_of(Scripted({"x": Refusal(reason="who?")}), [came("a", ONE)])


def test_components_have_one_task_each():
    class Twins(Chains):
        def arriving(self, entry, name, rng):
            one = super().arriving(entry, name, rng)
            return replace(one, components=tuple(replace(c, tasks=(1, 2)) for c in one.components))

    with pytest.raises(FieldError, match=r"topology a: c0\.tasks = \[1, 2\]: a component has one task here"):
        list(play(Twins(nodes=2, seed=0), Scripted({}), [came("a", ONE)], seed=0, clock=ticking()))


def steps_of(kind: str, seed: int) -> tuple[Step, ...]:
    draw = random_walk if kind == "walk" else poisson
    return draw(SIZES, 12, 40, random.Random(seed))


def play_least(
    steps: Sequence[Step], seed: int, *, restless: bool, room: int = 3, done: Sequence[Interval] = ()
) -> list[Interval]:
    policy = Least(LeastSettings(room=room, restless=restless))
    return rows_of(policy, steps, done=done, nodes=12, seed=seed)


def timeless(rows: Sequence[Interval]) -> list[Interval]:
    return [replace(row, plan_s=0.0) for row in rows]


@settings(max_examples=60)
@given(st.sampled_from(["walk", "poisson"]), st.integers(0, 10**6), st.booleans(), st.integers(0, 40))
def test_a_run_that_was_broken_off_gives_the_rows_of_one_that_was_not(kind, seed, restless, cut):
    steps = steps_of(kind, seed)
    undisturbed = play_least(steps, seed, restless=restless)
    before = play_least(steps[:cut], seed, restless=restless) if cut else []
    assert timeless(before) == timeless(undisturbed[:cut])
    after = play_least(steps, seed, restless=restless, done=before)
    assert timeless(after) == timeless(undisturbed[cut:])


def test_a_policy_that_moves_without_a_cause_cannot_go_on():
    steps = steps_of("walk", 5)
    done = play_least(steps[:5], 5, restless=False)
    policy = Least(LeastSettings(nervous=True))
    with pytest.raises(PlanError, match=r"moves topology 't\d+' though nothing came or went.*Begin anew"):
        rows_of(policy, steps, done=done, nodes=12, seed=5)


def test_policies_meet_the_same_arrivals():
    steps = steps_of("walk", 5)
    strict, wide = (play_least(steps, 5, restless=False, room=room) for room in (2, 4))
    events = [[(row.arrived, row.departed) for row in rows] for rows in (strict, wide)]
    assert events[0] == events[1]
    assert sum(len(row.refused) for row in strict) > sum(len(row.refused) for row in wide)


def test_equal_seeds_give_equal_rows_and_others_do_not():
    steps = steps_of("poisson", 5)
    assert play_least(steps, 5, restless=True) == play_least(steps, 5, restless=True)
    assert play_least(steps, 5, restless=True) != play_least(steps, 6, restless=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: replace(row, arrived=("x",)), "other topologies come and go in this run"),
        (lambda row: replace(row, placed={}), "these topologies arrived and have no places"),
        (lambda row: replace(row, placed={"x": {}}), "no topology with these components runs then"),
        (lambda row: replace(row, placed={"t0000": {"q": Slot("n000", 6700)}}), "no topology with these components"),
    ],
)
def test_rows_of_other_arrivals_are_refused(change, said):
    steps = steps_of("walk", 5)
    rows = play_least(steps[:3], 5, restless=False)
    with pytest.raises(FieldError, match=said):
        play_least(steps, 5, restless=False, done=[change(rows[0]), *rows[1:]])


def test_rows_of_a_longer_run_are_enough():
    steps = steps_of("walk", 5)
    assert play_least(steps[:2], 5, restless=False, done=play_least(steps, 5, restless=False)) == []
