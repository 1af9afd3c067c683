"""Operators that may run on some nodes only, matched with nodes so that all find room if that is possible at all.

Augmenting paths (H. W. Kuhn, *The Hungarian Method*, 1955; M. Hall's theorem says when there is no matching): an
operator that finds all its nodes full asks those that are there to move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from leeward.core.errors import PlanError


def matched(choices: Mapping[str, Sequence[int]], room: Mapping[int, int]) -> dict[str, int]:
    """Operator -> one of its nodes. `choices`: those that it prefers first; `room`: operators that a node can hold.

    Raises PlanError that names an operator which finds no room though all others move.
    """
    hosted: dict[int, list[str]] = {node: [] for node in room}
    found: dict[str, int] = {}

    def put(operator: str, tried: set[int]) -> bool:
        untried = [node for node in choices[operator] if node not in tried and room.get(node, 0) > 0]
        free = [node for node in untried if len(hosted[node]) < room[node]]
        for node in (*free[:1], *untried):
            tried.add(node)
            if len(hosted[node]) < room[node] or _relieved(node, tried):
                hosted[node].append(operator)
                found[operator] = node
                return True
        return False

    def _relieved(node: int, tried: set[int]) -> bool:
        for other in tuple(hosted[node]):
            if put(other, tried):
                hosted[node].remove(other)
                return True
        return False

    for operator in _narrow_first(choices):
        if not put(operator, set()):
            raise PlanError(
                f"operator {operator!r} finds no room on the {len(choices[operator])} nodes that it may run on.",
                remedy="Allow more nodes, raise their capacity, end a drain, or end an application.",
            )
    return found


def _narrow_first(choices: Mapping[str, Sequence[int]]) -> Iterable[str]:
    return sorted(choices, key=lambda operator: (len(choices[operator]), operator))
