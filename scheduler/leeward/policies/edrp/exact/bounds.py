"""The bounds of one search: the tree they run along, and tables for a few weights and prices.

A table holds for any weights A on response time and B on cost with A = a + alpha, B = b + beta: every feasible
deployment has a R + b C >= A R + B C - alpha R_max - beta C_max.  Two more bound R and C themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.kernel_bound import Reach, Relaxation, fill_inside, fill_keep, fill_reach
from leeward.policies.edrp.exact.kernel_relaxed import Usage, relaxed_use
from leeward.policies.edrp.exact.kernel_state import Tables
from leeward.policies.edrp.exact.tree import NONE, Tree, longest_paths, tree_along

#: Paths that are tried as spine.
SPINES = 4
#: Number of nodes from which on deployments are split into classes.
SPLIT_FROM = 150
#: Steps of the subgradient method.
STEPS = 60
#: Slots beside spread operators from which on nobody counts, and the most numbers in a table that counts them.
SLOTS, MOST_CELLS = 4, 4_000_000


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table before it is stacked with others."""

    relaxed: Relaxation
    constant: float
    limit: float


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Everything that a search needs to bound."""

    tree: Tree
    reach: Reach
    tables: Tables
    #: Inputs of `tables`.
    parts: tuple[Table, ...]

    def root(self, p: Arrays) -> float:
        """The bound on a R + b C before anything is fixed; infinite if R or C alone cannot be met."""
        b = self.tables
        values = b.constant + b.root[:, 0] - b.mu @ p.room
        if (values > b.limit).any():
            return np.inf
        return float(max(0.0, values[~np.isfinite(b.limit)].max()))


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A class of deployments, by how many replicas an operator may have, and the tree for its bounds."""

    sizes: np.ndarray  # [G, kmax + 1] which numbers of replicas
    tree: Tree
    reach: Reach
    #: A bound on a R + b C.
    value: float


def lay_out(
    p: Arrays,
    some: np.ndarray,
    alone: np.ndarray,
    *,
    enough: float = math.inf,
    in_time: Callable[[], bool] = lambda: True,
) -> list[Layout]:
    """All deployments as one class or, for many nodes, as two if that gives a better bound; the least bound first.

    Only one path counts as response time.  Where two run side by side, an operator that is on one of them alone
    seems to need no replicas with the other as spine, and seems to be all there is with its own.  Deployments with
    few and with many replicas of it can each take the spine that shows what they lack.
    A bound of `enough` ends the looking: with it every deployment of the class is pruned.
    """
    reach = _reach(p, some, alone)
    inner = p.delay[~np.eye(len(p.delay), dtype=bool)]
    hop_s = float(np.median(inner)) / 2 if len(inner) else 0.0
    paths = [path.operators for path in longest_paths(p, hop_s, SPINES)]
    sizes = np.ones(some.shape[:2], dtype=np.bool_)
    ways: list[tuple[Tree, Reach]] = []
    found: list[Layout] = []
    for path in paths:
        tree = tree_along(p, path)
        ways.append((tree, _with_inside(p, tree, reach)))
        found.append(_layout(p, ways[-1], some, alone, sizes))
        if found[-1].value >= enough or not in_time():
            break
    whole = max(found, key=_value)
    best = [whole]
    if len(p.speed) < SPLIT_FROM or whole.value >= enough:
        return best
    steps = np.arange(len(sizes[0]))
    doubtful: set[int] = set().union(*paths) - set(paths[0]).intersection(*paths)
    for g in sorted(doubtful):
        for few in range(1, int(p.k[g])):
            if not in_time():
                return best
            better = best[0].value + 1e-3 * abs(whole.value)
            parts: list[Layout] = []
            for side in (steps <= few, steps > few):
                own = sizes.copy()
                own[g] = side
                parts.append(max((_layout(p, way, some, alone, own) for way in ways), key=_value))
                if parts[-1].value < better:
                    break
            else:
                best = sorted(parts, key=_value)
    return best


def _layout(p: Arrays, way: tuple[Tree, Reach], some: np.ndarray, alone: np.ndarray, sizes: np.ndarray) -> Layout:
    """The class with the spine of this way, and its bound."""
    tree, reach = way
    own = _allowing(p, reach, some & sizes[:, :, None], alone & sizes[:, :, None])
    value = float(_table(p, tree, own, p.a, p.b, np.zeros(len(p.speed))).relaxed.roots[tree.parent == NONE].sum())
    return Layout(sizes=sizes, tree=tree, reach=reach, value=max(0.0, value))


def _value(layout: Layout) -> float:
    return layout.value


def prepare(p: Arrays, layout: Layout, some: np.ndarray, alone: np.ndarray) -> Bound:
    """The bounds for a class when only configurations of `some` and `alone` (see `Reach`) may be chosen."""
    sizes, tree = layout.sizes[:, :, None], layout.tree
    reach = _allowing(p, layout.reach, some & sizes, alone & sizes)
    mu = np.zeros(len(p.speed))
    tables = [
        _table(p, tree, reach, p.a, p.b, mu),
        _table(p, tree, reach, 1.0, 0.0, mu, limit=p.r_max * (1 + 1e-9)),
    ]
    return Bound(tree=tree, reach=reach, tables=_stack(p, tree, tables), parts=tuple(tables))


def sharpen(
    p: Arrays, bound: Bound, upper: float, steps: int = STEPS, *, in_time: Callable[[], bool] = lambda: True
) -> Bound:
    """Adds a table whose prices were raised, by a subgradient method, where the relaxed optimum uses too much.

    `upper` is the value of a known deployment, less its downtime's part; without one (infinite) a guess is used.
    """
    tree, reach = bound.tree, bound.reach
    prices = np.zeros(len(p.speed) + 2)  # mu, and those of R_max and C_max as shares of F
    best, best_value, stale, pace = None, -np.inf, 0, 1.0
    usage = Usage(nodes=np.empty(len(p.speed)), totals=np.empty(2), place=np.zeros((len(p.k), 4), dtype=np.int64))
    for _ in range(steps):
        if not in_time():
            break
        table = _priced(p, tree, reach, prices)
        value = table.constant + table.relaxed.roots[tree.parent == NONE].sum() - table.relaxed.mu @ p.room
        if not np.isfinite(value):
            break
        stale = 0 if value > best_value + 1e-6 * abs(value) else stale + 1
        if value > best_value:
            best, best_value = table, value
        if stale >= 4:
            stale, pace = 0, pace / 2
        relaxed_use(table.relaxed, usage)
        over = usage.totals / (p.r_max, p.c_max) - 1
        slope = np.concatenate([usage.nodes - p.room, over])
        slope[(prices == 0) & (slope < 0)] = 0.0
        steepness = slope @ slope
        if steepness < 1e-12 or value >= upper:
            break
        goal = upper if np.isfinite(upper) else 1.1 * abs(value) + 1e-3
        prices = np.maximum(0.0, prices + pace * (goal - value) / steepness * slope)
    if best is None:
        return bound
    return Bound(tree=tree, reach=reach, tables=_stack(p, tree, [best, *bound.parts]), parts=(best, *bound.parts))


def _priced(p: Arrays, tree: Tree, reach: Reach, prices: np.ndarray) -> Table:
    mu, alpha, beta = prices[:-2], prices[-2], prices[-1]
    A, B = p.a + alpha / p.r_max, p.b + beta / p.c_max
    return _table(p, tree, reach, A, B, mu, constant=-float(alpha + beta))


def _with_inside(p: Arrays, tree: Tree, reach: Reach) -> Reach:
    inside, inside_one = np.zeros_like(reach.inside), np.zeros_like(reach.inside_one)
    fill_inside(p, tree, inside, inside_one)
    beside = np.array([_slots(p, reach, g, int(q)) for g, q in enumerate(tree.parent)])
    return reach._replace(inside=inside, inside_one=inside_one, beside=beside)


def _slots(p: Arrays, reach: Reach, g: int, parent: int = NONE) -> int:
    """Slots that at most are left on a node with a replica of g, and of its parent if one is given."""
    usable = p.allowed[g] if parent == NONE else p.allowed[g] & p.allowed[parent]
    taken = p.res_units[g] + (0 if parent == NONE else p.res_units[parent])
    left = max(int(p.room_units[usable].max(initial=0)) - int(taken), 0)
    return -(-left // reach.slot)


def _reach(p: Arrays, some: np.ndarray, alone: np.ndarray) -> Reach:
    count, n = p.allowed.shape
    near_out, next_out, near_in, link_out = np.empty((count, n)), np.empty((count, n)), np.empty(n), np.empty(n)
    fill_reach(p, near_out, next_out, near_in, link_out)
    kmax = int(p.k.max())
    priced = n > 1 and p.b > 0 and link_out.min() > 0
    slot = int(min(p.res_units[p.res_units > 0], default=1))
    cells = count * n * (int(p.room_units.max()) + 1) * (kmax + 1)
    reach = Reach(
        some=some,
        alone=alone,
        near=_nearest(p.delay),
        near_out=near_out,
        next_out=next_out,
        near_in=near_in,
        link_out=link_out,
        link_any=float(link_out.min()) if n > 1 else 0.0,
        levels=int(p.room_units.max()),
        most=SLOTS if priced and cells * (SLOTS + 2) <= MOST_CELLS else 0,
        slot=slot,
        takes=p.res_units // slot,
        fresh=np.zeros(count, dtype=np.int64),
        beside=np.zeros(count, dtype=np.int64),
        inside=np.zeros((count, kmax + 1, kmax + 1, kmax + 1, kmax + 1)),
        inside_one=np.zeros((count, kmax + 1, kmax + 1)),
    )
    return _allowing(p, reach._replace(fresh=np.array([_slots(p, reach, g) for g in range(count)])), some, alone)


def _allowing(p: Arrays, reach: Reach, some: np.ndarray, alone: np.ndarray) -> Reach:
    elsewhere = np.isfinite(reach.near_out)  # another node may host the operator
    allowed = p.allowed[:, None, :]
    return reach._replace(some=some & allowed & elsewhere[:, None, :], alone=alone & allowed)


def _nearest(delay: np.ndarray) -> np.ndarray:
    return np.argsort(delay, axis=1, kind="stable").astype(np.int32)


def _table(
    p: Arrays, tree: Tree, reach: Reach, A: float, B: float, mu: np.ndarray, *, constant: float = 0.0,
    limit: float = np.inf,
) -> Table:  # fmt: skip
    count, n, kmax = len(p.k), len(p.speed), int(p.k.max())
    relaxed = Relaxation(
        p=p,
        t=tree,
        x=reach,
        A=float(A),
        B=float(B),
        mu=mu,
        keep=np.full((count, n, reach.levels + 1, kmax + 1, reach.most + 2), np.inf),
        together=np.empty((count, n)),
        spread=np.empty((count, n)),
        roots=np.empty(count),
    )
    fill_keep(relaxed)
    return Table(relaxed=relaxed, constant=constant, limit=limit)


def _stack(p: Arrays, tree: Tree, tables: list[Table]) -> Tables:
    count = len(p.k)
    hang = np.full((count + 1, count), NONE)
    hang_count = np.zeros(count + 1, dtype=np.int64)
    root = np.zeros((len(tables), count + 1))
    for level in range(count + 1):
        unfixed = [int(g) for g in tree.order[level:]]
        parents: set[int] = set()
        for g in unfixed:
            parent = int(tree.parent[g])
            if parent == NONE:
                root[:, level] += [table.relaxed.roots[g] for table in tables]
            elif tree.level[parent] < level and parent not in parents:
                parents.add(parent)  # its other unfixed children are in the table of the first
                hang[level, hang_count[level]] = g
                hang_count[level] += 1
    return Tables(
        keep=np.stack([table.relaxed.keep for table in tables]),
        A=np.array([table.relaxed.A for table in tables]),
        B=np.array([table.relaxed.B for table in tables]),
        mu=np.stack([table.relaxed.mu for table in tables]),
        constant=np.array([table.constant for table in tables]),
        limit=np.array([table.limit for table in tables]),
        root=root,
        hang=hang,
        hang_count=hang_count,
    )
