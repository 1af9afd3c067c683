"""A handover goes in steps, each a handover of its own: which key groups change owner next. Pure.

Nothing is planned ahead but the order: the next step follows from the tables in force, so that a coordinator that takes
over in the middle goes on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from leeward.core.keys import GROUPS
from leeward.core.migration.machine import Machine
from leeward.core.plan import Plan
from leeward.core.table import Table, movers


def in_order(old: Mapping[str, Table], plan: Plan) -> dict[str, tuple[int, ...]]:
    """Component -> the groups whose owner the plan changes, coldest first: in the last steps little else moves."""
    order = {}
    for component, new in plan.tables.items():
        load = plan.load.get(component, {})
        groups = [group for group, owner in enumerate(new) if owner != old[component][group]]
        order[component] = tuple(sorted(groups, key=lambda group: (load.get(group, 0.0), group)))
    return {component: groups for component, groups in order.items() if groups}


def next_tables(m: Machine) -> dict[str, Table]:
    """The tables after the next step of the journal's plan; those of the plan, once nothing is left to do."""
    tables, wanted = dict(m.record.tables), m.journal.new_tables
    for component, order in m.journal.order.items():
        tables[component] = advance(tables[component], wanted[component], order, limit_of(m, component))
    return tables


def advance(present: Table, wanted: Table, order: Iterable[int], limit: int) -> Table:
    """`wanted` for the first groups of `order` that still differ; no task gives, or takes, more than `limit`.

    From one only replica to another all go at once: there never are two of what may be there once only.
    """
    if len(set(present)) == len(set(wanted)) == 1:
        return wanted
    table = list(present)
    gives: Counter[int] = Counter()
    takes: Counter[int] = Counter()
    for group in order:
        old, new = present[group], wanted[group]
        if old != new and gives[old] < limit and takes[new] < limit:
            table[group] = new
            gives[old] += 1
            takes[new] += 1
    return tuple(table)


def limit_of(m: Machine, component: str) -> int:
    """Groups that one task may give, or take, in one step. State too small to be copied ahead moves whole."""
    size = m.sizes.get(component)
    if size is None:  # not known before the first cut
        return m.limits.step_groups
    if size <= m.limits.ahead_bytes:
        return GROUPS
    return max(1, min(m.limits.step_groups, m.limits.step_bytes * GROUPS // max(1, size)))


def witnesses_of(m: Machine, tables: Mapping[str, Table]) -> tuple[int, ...]:
    """Tasks whose reports prove that all replicas have passed the step to these tables: donors, receivers, sinks.

    A marker is aligned at a sink when all that worked before have sent it on. Empty (every task) if no sink is known.
    """
    last = {owner for name in m.sinks for owner in m.record.tables[name]}
    return tuple(sorted(last | movers(m.record.tables, tables))) if last else ()


def moved_bytes(m: Machine, tables: Mapping[str, Sequence[int]]) -> float:
    """About how much state changes hands when these tables follow those in force, as of the newest cut."""
    total = 0.0
    for component, new in tables.items():
        old = m.record.tables[component]
        total += m.sizes.get(component, 0) * sum(a != b for a, b in zip(old, new, strict=True)) / len(new)
    return total
