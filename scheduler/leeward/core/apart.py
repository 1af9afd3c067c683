"""Components that may share no node (`leeward.apart`): nodes that are barred for one, and a first node for each. Pure.

Two components of one list are rivals. Ties are broken by load and id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from leeward.core.errors import PlanError

Rivals = Mapping[str, frozenset[str]]  #: component -> those that it may share no node with

#: Nodes that are tried for all components together, before it is given up.
TRIES = 20_000


def rivals_of(apart: Iterable[Collection[str]]) -> Rivals:
    """Of the lists; a component without rivals is absent."""
    found: dict[str, frozenset[str]] = {}
    for names in apart:
        for name in names:
            others = found.get(name, frozenset()) | frozenset(names) - {name}
            if others:
                found[name] = others
    return found


def barred(component: str, rivals: Rivals, hosts: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
    """Nodes on which a rival has replicas. `hosts`: component -> node -> replicas; 0 is none."""
    others = rivals.get(component, frozenset())
    return frozenset(node for other in others for node, count in hosts.get(other, {}).items() if count > 0)


def settle(
    apart: Iterable[Collection[str]], hosts: Mapping[str, Mapping[str, int]], allowed: Mapping[str, Collection[str]],
    room: Mapping[str, int],
) -> dict[str, dict[str, int]] | None:  # fmt: skip
    """`hosts` without the replicas that share a node with a rival, such that each component has one or finds one.

    A rival that comes first by name stays. Where another then finds no node, all rivals are seated anew, and where that
    fails, too, the answer is None. `allowed`: component -> nodes; `room`: node -> replicas that it holds.
    """
    rivals, kept = rivals_of(apart), {name: dict(counts) for name, counts in sorted(hosts.items())}
    if not rivals:
        return kept
    for name in kept:
        gone = barred(name, rivals, {other: counts for other, counts in kept.items() if other < name})
        kept[name] = {node: count for node, count in kept[name].items() if node not in gone}
    for counts in (kept, kept | {name: dict[str, int]() for name in rivals}):
        missing = [name for name in sorted(rivals) if not any(counts.get(name, {}).values())]
        free = {node: n - sum(mine.get(node, 0) for mine in counts.values()) for node, n in room.items()}
        seats = one_each(missing, allowed, free, rivals, counts)
        if seats is not None:
            return {name: dict(mine) | ({seats[name]: 1} if name in seats else {}) for name, mine in counts.items()}
    return None


def seated(
    apart: Collection[Collection[str]], hosts: Mapping[str, Mapping[str, int]],
    allowed: Mapping[str, Collection[str]], room: Mapping[str, int],
) -> dict[str, dict[str, int]]:  # fmt: skip
    """As `settle`. Raises PlanError where it finds no answer."""
    settled = settle(apart, hosts, allowed, room)
    if settled is None:
        raise PlanError(
            f"components {[list(names) for names in apart]} find no nodes of their own.",
            remedy="Add nodes, end a drain, or change leeward.apart of the topology.",
        )
    return settled


def one_each(
    components: Sequence[str], allowed: Mapping[str, Collection[str]], room: Mapping[str, int], rivals: Rivals,
    hosts: Mapping[str, Mapping[str, int]],
) -> dict[str, str] | None:  # fmt: skip
    """A node for one replica of each component, apart from its rivals; None if there is none, or it was not found.

    Those with the fewest nodes are seated first; nodes with the most room are tried first.
    """
    nodes = {name: sorted(set(allowed[name]) - barred(name, rivals, hosts)) for name in components}
    order = sorted(components, key=lambda name: (len(nodes[name]), name))
    seats: dict[str, str] = {}
    left, tries = dict(room), [TRIES]
    seat = _seating(order, nodes, rivals, seats, left, tries)
    return seats if seat(0) else None


def _seating(
    order: Sequence[str], nodes: Mapping[str, Sequence[str]], rivals: Rivals, seats: dict[str, str],
    left: dict[str, int], tries: list[int],
) -> Callable[[int], bool]:  # fmt: skip
    """The step of a depth-first search: seats the components from a position on."""

    def seat(at: int) -> bool:
        if at == len(order):
            return True
        name = order[at]
        taken = {seats[other] for other in rivals.get(name, ()) if other in seats}
        for node in sorted(nodes[name], key=lambda node: (-left.get(node, 0), node)):
            if left.get(node, 0) < 1 or node in taken:
                continue
            tries[0] -= 1
            if tries[0] < 0:
                return False
            seats[name] = node
            left[node] -= 1
            if seat(at + 1):
                return True
            del seats[name]
            left[node] += 1
        return False

    return seat
