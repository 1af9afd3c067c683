"""The exact method: a branch and bound of our own that proves the optimum.

Downtime is settled first: the search runs once for each interval of T_D, with the configurations that stay
below the interval's upper end, and adds the price of its lower end to every bound.  Keeping the present deployment
(T_D = 0) needs no search.  First a quick bound (`bounds.py`) and a narrow beam search for each interval, then, the
least bound first, a sharper bound, a wider beam and depth first to the end.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from leeward.policies.edrp.exact.arrays import GENERIC, LIVE, Arrays, arrays_of
from leeward.policies.edrp.exact.bounds import Bound, Layout, lay_out, prepare, sharpen
from leeward.policies.edrp.exact.kernel_downtime import downtime_tables
from leeward.policies.edrp.exact.kernel_improve import draft_of, improve
from leeward.policies.edrp.exact.kernel_search import beam, depth_first
from leeward.policies.edrp.exact.kernel_state import Children, Incumbent, Scratch, Search, State
from leeward.policies.edrp.problem.evaluate import Metrics, assess
from leeward.policies.edrp.problem.latency import MM1
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Optimal, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Deployment, Node, Operator, Stream, Weights

#: No feasible deployment is worth more: every term of F is at most its weight.  With room for rounding.
CEILING = 1.0 + 1e-5
#: A deployment must be better by this, absolutely, to be looked for: far below what anybody can measure.
SLACK = 1e-7
#: Share of the time for looking for spines and classes.
LAYOUT_SHARE = 0.2
#: Gives the bounds for an interval of downtime and a class of deployments.
Prepared = Callable[["Interval", Layout], Bound]
#: Most intervals of downtime.
INTERVALS = 8
#: Widths of the beam before and after the bounds are sharpened, and children taken from each of its members.
FIRST_BEAM, BEAM, EACH = 4, 48, 32
#: Deployments that the local search looks at.
IMPROVE = 300_000
#: Memory for children, bytes.
CHILDREN_BYTES = 120e6
#: Seconds between two looks at the clock.
SLICE_S = 0.05
#: Bounds that may be computed before the bounds are sharpened: milliseconds.
QUICK = 20_000
#: A budget without end, and bounds a second on a slow machine, before it is known better.
ENDLESS, PACE = 1 << 60, 200_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Deployments with a downtime from `low` to `high` (s)."""

    low: float
    high: float


def solve_exact(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    start: Deployment | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """The proven optimum, or what the time limit allows with its proven bound.

    It begins with the present deployment and with `start`, where they meet the constraints.
    The search has no randomness; `seed` is taken so that all methods are called alike.  The first call on a
    machine compiles for a minute or so (kept on disk); the time limit begins after that.
    """
    del seed
    warm_up()
    started = clock()
    deadline = math.inf if time_limit_s is None else started + time_limit_s
    p = arrays_of(problem)
    search = BranchAndBound(problem=problem, p=p, h=_no_incumbent(p), gap=gap, deadline=deadline, clock=clock)
    bound = search.run(start)
    return _conclude(search, bound, Effort(method="exact", seconds=clock() - started))


def climb(
    problem: Problem, starts: Iterable[Deployment], *, looks: int, deadline: float, clock: Callable[[], float]
) -> tuple[Deployment, Metrics] | None:
    """The best that a local search finds from the best of `starts`, looking at no more than `looks` deployments.

    None if none of `starts` meets the constraints. Nothing is proven.
    """
    p = arrays_of(problem)
    search = BranchAndBound(problem=problem, p=p, h=_no_incumbent(p), gap=0.0, deadline=deadline, clock=clock)
    for start in starts:
        search.offer(start)
    search.improve_near(looks)
    return None if search.best is None or search.metrics is None else (search.best, search.metrics)


def warm_up() -> None:
    """Compiles what the search runs, or loads it from disk, on a toy problem; once for each process.

    Of several threads that want it one compiles, and the others wait.
    """
    with _COMPILING:
        _compile_near()
        _compile_proof()


def warm_up_near() -> None:
    """The same for the part that `climb` runs: a service that needs no proof holds 32 MB less."""
    with _COMPILING:
        _compile_near()


def warm_up_proof() -> None:
    """The same for the other part: set-up compiles both at once."""
    with _COMPILING:
        _compile_proof()


_COMPILING = threading.Lock()


@cache
def _compile_proof() -> None:
    p, h = _toy()
    least, alone = downtime_bounds(p)
    h.floor[:] = 0.0, p.d_max
    some, all_there = least <= p.d_max, alone <= p.d_max
    bound = sharpen(p, prepare(p, lay_out(p, some, all_there)[0], some, all_there), CEILING, steps=2)
    space = _search_space(p, bound, h)
    beam(space, 2, 2)
    depth_first(space, 0)


@cache
def _compile_near() -> None:
    p, h = _toy()
    improve(p, draft_of(p, h.best_nodes, np.ones_like(h.best_size), 100))


def _toy() -> tuple[Arrays, Incumbent]:
    chain = ("a", "b", "c")
    problem = Problem(
        nodes=tuple(Node(id=f"n{u}") for u in range(3)),
        delay_s=((0.0, 0.1, 0.1), (0.1, 0.0, 0.1), (0.1, 0.1, 0.0)),
        operators=tuple(Operator(id=name, k=2, curve=MM1(mu=2.0), source_rate=float(name == "a")) for name in chain),
        streams=tuple(Stream(source=u, target=v, rate=1.0) for u, v in pairwise(chain)),
        weights=Weights(r=0.5, c=0.5, d=0.0),
        bounds=Bounds(r=10.0, c=10.0, d=10.0),
    )
    p = arrays_of(problem)
    return p, _no_incumbent(p)


def _conclude(search: BranchAndBound, bound: float, effort: Effort) -> Outcome:
    best, metrics = search.best, search.metrics
    if best is None or metrics is None:
        if bound >= CEILING:
            return Infeasible(why=("no deployment meets all bounds and capacities",), effort=effort)
        return Unknown(why="the time limit was reached before a deployment was found", effort=effort, bound=bound)
    bound = min(bound, metrics.F)
    if bound >= search.cutoff() - 1e-12:
        return Optimal(deployment=best, metrics=metrics, bound=bound, effort=effort)
    return Feasible(deployment=best, metrics=metrics, bound=bound, effort=effort)


@dataclass(kw_only=True)
class BranchAndBound:
    """One call's state: the incumbent, shared by the searches of all intervals."""

    problem: Problem
    p: Arrays
    h: Incumbent
    gap: float
    deadline: float
    clock: Callable[[], float]
    #: Bounds a second, as measured.
    pace: float = PACE
    #: The best verified deployment, and its measures.
    best: Deployment | None = None
    metrics: Metrics | None = None

    def run(self, start: Deployment | None) -> float:
        """Searches every interval that may matter; returns a proven lower bound on F."""
        p = self.p
        least, alone = downtime_bounds(p)
        for known in (self.problem.current, start):
            if known is not None:
                self.offer(known)
        parts = list(intervals(p, least, alone))
        enough = self.cutoff() - p.e * min(part.low for part in parts)  # all of it is pruned then: nothing to improve
        soon = self.clock() + LAYOUT_SHARE * (self.deadline - self.clock())
        layouts = lay_out(p, least <= p.d_max, alone <= p.d_max, enough=enough, in_time=lambda: self.clock() < soon)
        if min(layout.value for layout in layouts) < enough:
            self.improve_near()

        def prepared(interval: Interval, layout: Layout) -> Bound:
            return prepare(p, layout, least <= interval.high, alone <= interval.high)

        rooted = [
            (self._root_bound(interval, layout, prepared), interval, layout) for interval in parts for layout in layouts
        ]
        rooted.sort(key=lambda one: (one[0], one[1].low))
        proven = [self._close(interval, layout, root, prepared) for root, interval, layout in rooted]
        return min([*proven, float(self.h.best[0])])

    def _root_bound(self, interval: Interval, layout: Layout, prepared: Prepared) -> float:
        """A quick bound on F within the interval and class; tries for an incumbent."""
        price = self.p.e * interval.low
        if price + layout.value >= self.cutoff() or (self.best is not None and self._out_of_time()):
            return price + layout.value
        bound = prepared(interval, layout)
        root = price + max(layout.value, bound.root(self.p))
        if root < self.cutoff():
            self._beam(interval, bound, FIRST_BEAM)
        return root

    def _close(self, interval: Interval, layout: Layout, root: float, prepared: Prepared) -> float:
        """A lower bound on F within the interval and class, given one; improves the incumbent on the way."""
        p, h = self.p, self.h
        if root >= self.cutoff():
            return self.cutoff()
        if self._out_of_time():
            return root
        price = p.e * interval.low
        bound = prepared(interval, layout)
        proven = self._try_quickly(interval, bound, root)
        if proven is not None:
            return proven
        bound = sharpen(p, bound, float(h.best[0]) - price, in_time=lambda: not self._out_of_time())
        root = max(root, bound.root(p) + price)
        if root >= self.cutoff():
            return self.cutoff()
        space = self._beam(interval, bound, BEAM)
        return self.cutoff() if root >= self.cutoff() else self._depth_first(space, root)

    def _try_quickly(self, interval: Interval, bound: Bound, root: float) -> float | None:
        """The result of `_close`, if a short search with the quick bound gets to the end; sharpening takes longer."""
        h, known = self.h, float(self.h.best[0])
        space = _search_space(self.p, bound, h)
        h.floor[:] = interval.low, interval.high
        h.depth[0], h.dropped[0] = -2, math.inf
        h.budget[0] = min(QUICK, self._budget())
        depth_first(space, 0)
        if self._check_found(known):
            self.improve_near()
        return min(max(root, float(h.dropped[0])), self.cutoff()) if h.depth[0] == -1 else None

    def _beam(self, interval: Interval, bound: Bound, width: int) -> Search:
        h = self.h
        space = _search_space(self.p, bound, h)
        known = float(h.best[0])
        h.floor[:] = interval.low, interval.high
        h.budget[0] = ENDLESS if self.best is None else self._budget()
        beam(space, width, EACH)
        if self._check_found(known):
            self.improve_near()
        return space

    def _depth_first(self, space: Search, root: float) -> float:
        """Depth first until nothing is open or the time is up; a lower bound on F."""
        h = self.h
        h.depth[0], h.dropped[0] = -2, math.inf
        improving, since_improved = 0.0, 0.0  # s: its last duration, and the time since then
        while h.depth[0] != -1 and not self._out_of_time():
            known, began, budget = float(h.best[0]), self.clock(), self._budget()
            h.budget[0] = budget
            reserve = max(0, budget - int(self.pace * SLICE_S))
            depth_first(space, reserve)
            spent = self.clock() - began
            pace = float(budget - h.budget[0]) / max(spent, 1e-6)
            self.pace = min(max(pace, self.pace / 4), self.pace * 4)
            since_improved += spent
            if self._check_found(known) and since_improved > 10 * improving:
                began = self.clock()
                self.improve_near()
                improving, since_improved = self.clock() - began, 0.0
        open_bounds = [max(root, float(h.dropped[0])), self.cutoff()]
        if h.depth[0] == -2:
            open_bounds.append(root)
        elif h.depth[0] != -1:
            open_bounds.append(max(root, _least_open(space.c, int(h.depth[0]))))
        return min(open_bounds)

    def _out_of_time(self) -> bool:
        return self.clock() >= self.deadline

    def _budget(self) -> int:
        """Work that there is time for."""
        left = self.deadline - self.clock()
        return ENDLESS if left == math.inf else int(min(float(ENDLESS), max(0.0, left) * self.pace))

    def cutoff(self) -> float:
        """The bound that a finished search has proven: nothing beats the incumbent by more than the slack."""
        best = float(self.h.best[0])
        return best - float(self.h.slack[0]) - float(self.h.slack[1]) * best

    def offer(self, deployment: Deployment) -> None:
        """Makes it the incumbent if it verifies and is better."""
        metrics, broken = assess(self.problem, deployment)
        if broken or metrics is None:
            return
        if self.h.best[0] > metrics.F or self.best is None:
            self.best, self.metrics = {name: dict(placed) for name, placed in deployment.items()}, metrics
            self.h.best[0] = metrics.F
            self.h.slack[:] = SLACK, self.gap  # before there is an incumbent, nothing may be passed over

    def _check_found(self, known: float) -> bool:
        """Verifies what the compiled search has found since the incumbent was worth `known`; whether it found any."""
        h = self.h
        if not h.best[0] < known:
            return False
        found, claimed = self._decode(h.best_nodes, h.best_size), float(h.best[0])
        h.best[0] = known
        self.offer(found)
        if not h.best[0] <= claimed + 1e-9:  # less is fine: the claim has the interval's least downtime in it
            raise AssertionError(f"the search claimed F = {claimed}, the definitions say {h.best[0]}: {found}")
        return True

    def improve_near(self, looks: int = IMPROVE) -> None:
        """Looks for something better close to the incumbent."""
        if self.best is None or self._out_of_time():
            return
        nodes, size = np.zeros_like(self.h.best_nodes), np.zeros_like(self.h.best_size)
        for i, op in enumerate(self.problem.operators):
            placed = [self.problem.node_index[u] for u, count in self.best[op.id].items() for _ in range(count)]
            nodes[i, : len(placed)], size[i] = placed, len(placed)
        draft = draft_of(self.p, nodes, size, min(looks, self._budget()))
        improve(self.p, draft)
        found = self._decode(draft.nodes, draft.size)
        if found != self.best:
            self.offer(found)

    def _decode(self, nodes: np.ndarray, size: np.ndarray) -> Deployment:
        return {
            op.id: dict(Counter(self.problem.nodes[u].id for u in nodes[i, : size[i]]))
            for i, op in enumerate(self.problem.operators)
        }


def downtime_bounds(p: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """[G, kmax + 1, n] T_D,i: at least, with a replica on v and another elsewhere; exactly, with all on v."""
    shape = (len(p.k), int(p.k.max()) + 1, len(p.speed))
    least, alone = np.full(shape, np.inf), np.full(shape, np.inf)
    downtime_tables(p, least, alone)
    return least, alone


def intervals(p: Arrays, least: np.ndarray, alone: np.ndarray) -> Iterator[Interval]:
    """The intervals of downtime, lowest first; without a price on downtime there is one.

    Each begins at a value that some configuration has, after one of the widest gaps between such values.
    """
    priced = p.e > 0 and p.present_size.any()
    values = np.concatenate([least[np.isfinite(least)], alone[np.isfinite(alone)]])
    values = values[(values > 0) & (values <= p.d_max)]
    if not priced or len(values) == 0:
        yield Interval(low=0.0, high=float(p.d_max))
        return
    values = np.unique([min(values.min(), least_change(p)), *values])
    gaps = np.diff(values)
    widest = np.argsort(-gaps, kind="stable")[: INTERVALS - 1]
    begins = [0, *sorted(int(at) + 1 for at in widest if gaps[at] * p.e > 1e-4)]
    for at, begin in enumerate(begins):
        high = np.nextafter(values[begins[at + 1]], 0) if at + 1 < len(begins) else p.d_max
        yield Interval(low=float(values[begin]), high=float(high))


def least_change(p: Arrays) -> float:
    """No change of a deployment has less downtime than this."""
    if p.model == GENERIC:
        return p.sync
    restart = max(p.sync, p.restart)
    return min(float(p.live[0]), restart) if p.model == LIVE else restart


def _no_incumbent(p: Arrays) -> Incumbent:
    shape = (len(p.k), int(p.k.max()))
    return Incumbent(
        best=np.array([CEILING]),
        best_nodes=np.zeros(shape, dtype=np.int64),
        best_size=np.zeros(shape[0], dtype=np.int64),
        dropped=np.array([np.inf]),
        budget=np.array([ENDLESS]),
        depth=np.array([-2]),
        slack=np.zeros(2),
        floor=np.zeros(2),
    )


def _search_space(p: Arrays, bound: Bound, h: Incumbent) -> Search:
    count, kmax, n = len(p.k), int(p.k.max()), len(p.speed)
    cap = int(max(1000, min(100_000, CHILDREN_BYTES / count / (8 * (kmax + 8)))))
    state = State(
        nodes=np.zeros((count, kmax), dtype=np.int64),
        size=np.zeros(count, dtype=np.int64),
        finish=np.zeros(count),
        rest=p.room.copy(),
        units=p.room_units.copy(),
        cost=np.zeros(count + 1),
        downtime=np.zeros(count + 1),
        response=np.zeros(count + 1),
        price=bound.tables.mu @ p.room,
        head=np.zeros(count),
        tail=np.zeros(count),
        join=np.zeros(count),
        fixed=np.zeros(count, dtype=np.bool_),
    )
    children = Children(
        nodes=np.zeros((count, cap, kmax), dtype=np.int64),
        size=np.zeros((count, cap), dtype=np.int64),
        bound=np.zeros((count, cap)),
        values=np.zeros((count, cap, 4)),
        order=np.zeros((count, cap), dtype=np.int64),
        count=np.zeros(count, dtype=np.int64),
        at=np.zeros(count, dtype=np.int64),
    )
    scratch = Scratch(
        ready=np.zeros(n),
        onward=np.zeros(n),
        joined=np.zeros(n),
        traffic=np.zeros(n),
        bound=np.zeros(n),
        whole=np.zeros(n),
        base=np.zeros(len(bound.tables.A)),
        nodes=np.zeros(kmax, dtype=np.int64),
        sorted=np.zeros(kmax, dtype=np.int64),
        pick=np.zeros(kmax + 1, dtype=np.int64),
    )
    return Search(p=p, t=bound.tree, x=bound.reach, b=bound.tables, s=state, h=h, c=children, scratch=scratch)


def _least_open(children: Children, depth: int) -> float:
    """The least bound of what was put off on the way down to `depth`."""
    least = math.inf
    for level in range(depth + 1):
        at, count = int(children.at[level]), int(children.count[level])
        if at < count:
            least = min(least, float(children.bound[level, children.order[level, at]]))
    return least
