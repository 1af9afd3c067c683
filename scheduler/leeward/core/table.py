"""Routing tables: for each component, which task owns each key group.

A table is a tuple of GROUPS task ids. A task that owns groups is a replica; the others are warm.
Stateless components have tables too: their tuples rotate over the entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from leeward.core.errors import PlanError
from leeward.core.keys import GROUPS

Table = tuple[int, ...]


def check_table(component: str, table: Sequence[int], tasks: Iterable[int]) -> Table:
    """The table as a tuple; raises PlanError if it has not GROUPS entries or an entry is none of `tasks`."""
    if len(table) != GROUPS:
        raise PlanError(
            f"table of {component!r} has {len(table)} entries, not {GROUPS}.",
            remedy="Name one owner for each key group.",
        )
    known = set(tasks)
    for group, owner in enumerate(table):
        if type(owner) is not int or owner not in known:
            raise PlanError(
                f"table of {component!r} gives group {group} to {owner!r}, which is none of its tasks.",
                remedy=f"Its tasks are {sorted(known)}.",
            )
    return tuple(table)


def replicas(table: Sequence[int]) -> tuple[int, ...]:
    """The tasks that own at least one group, ascending."""
    return tuple(sorted(set(table)))


def owned(table: Sequence[int], task: int) -> tuple[int, ...]:
    """The groups that `task` owns, ascending."""
    return tuple(group for group, owner in enumerate(table) if owner == task)


def gained(before: Sequence[int], after: Sequence[int], task: int) -> dict[int, int]:
    """Groups that `task` owns only in `after` -> their owner in `before`. Swap the tables for those it loses."""
    pairs = enumerate(zip(before, after, strict=True))
    return {group: old for group, (old, new) in pairs if new == task != old}


def movers(before: Mapping[str, Table], after: Mapping[str, Table]) -> set[int]:
    """Tasks that give or take key groups where the tables `after` follow those `before`."""
    return {task for pair in _moves(before, after) for task in pair}


def givers(before: Mapping[str, Table], after: Mapping[str, Table]) -> set[int]:
    """Those that give some."""
    return {old for old, _ in _moves(before, after)}


def _moves(before: Mapping[str, Table], after: Mapping[str, Table]) -> set[tuple[int, int]]:
    """(Task that gives, task that takes)."""
    pairs = {pair for name, new in after.items() for pair in zip(before[name], new, strict=True)}
    return {(old, new) for old, new in pairs if old != new}


def even_table(tasks: Sequence[int]) -> Table:
    """Groups dealt round-robin over `tasks` in the order given."""
    if not tasks:
        raise PlanError("a table needs at least one task.", remedy="Keep one replica of each component.")
    return tuple(tasks[group % len(tasks)] for group in range(GROUPS))


def redistribute(table: Sequence[int], tasks: Sequence[int]) -> Table:
    """A balanced table over `tasks` that moves as few groups away from `table` as possible.

    Shares differ by at most one group; owners that keep the larger shares are those that own most already,
    ties by task id. Groups given up are the highest numbered ones. Same input, same output.
    """
    if not tasks:
        raise PlanError("a table needs at least one task.", remedy="Keep one replica of each component.")
    have = Counter(owner for owner in table if owner in set(tasks))
    ranked = sorted(tasks, key=lambda task: (-have[task], task))
    base, extra = divmod(GROUPS, len(ranked))
    quota = {task: base + (1 if rank < extra else 0) for rank, task in enumerate(ranked)}
    result: list[int | None] = []
    for owner in table:
        keeps = quota.get(owner, 0) > 0
        if keeps:
            quota[owner] -= 1
        result.append(owner if keeps else None)
    vacant = iter([task for task in sorted(quota) for _ in range(quota[task])])
    return tuple(next(vacant) if owner is None else owner for owner in result)


def first_tables(tasks: Mapping[int, str], wanted: object) -> dict[str, Table]:
    """Tables of a topology without a record: tasks and coordinator assume the same, without a message.

    `tasks`: task -> component, system components left out here; `wanted`: the topology's `leeward.replicas`, a
    mapping component -> number of replicas at the start, or None for one each.
    """
    counts = wanted if isinstance(wanted, Mapping) else {}
    by_component: dict[str, list[int]] = {}
    for task, name in sorted(tasks.items()):
        if not name.startswith("__"):
            by_component.setdefault(name, []).append(task)
    return {name: even_table(mine[: counts.get(name, 1)]) for name, mine in by_component.items()}


def tables_text(tables: Mapping[str, Sequence[int]]) -> str:
    """The text that markers carry to the Java groupings: `component=t0,...,t127;component2=...`."""
    return ";".join(f"{name}={','.join(map(str, tables[name]))}" for name in sorted(tables))
