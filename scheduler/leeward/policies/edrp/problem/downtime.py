"""Downtime t_D(i, U, V) of one operator that goes from deployment U to V: three strategies.

`generic` is appendix A.1 of the paper, `storm` appendix A.2, `live` the measured cost of a handover that
stops nothing but the key groups that move, and A.2 where that is not enough as an executor has to move.

Symbols: I_S -> state_bytes, I_C -> code_bytes, t_syn -> sync_s, t_s,u -> spawn_s, d_(u,DS) -> store_up_s,
d_(DS,u) -> store_down_s, r_(u,DS) -> store_up_rate (bytes/s, so the factor 8 of a rate in bit/s is gone),
LS -> swap.  Equation numbers are the paper's.

Read with the errata: (25) prints the conditions of scale-out and scale-in swapped (|U| < |V| is the
scale-out); a transfer of no bytes still pays its round trip; a change without a pair u != v costs t_syn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import LiveDowntime, Node, Operator

#: One operator's deployment: node id -> replicas.
Multiset = Mapping[str, int]


class Downtime(Protocol):
    """T_D,i as a function of the operator's own next deployment alone, which is what all methods build on."""

    def seconds(self, operator: Operator, before: Multiset, after: Multiset) -> float:
        """T_D,i when `operator` goes from `before` to `after`; 0 if they are equal."""
        ...


def downtime_of(problem: Problem) -> Downtime:
    """The strategy that the problem names, ready to be asked."""
    nodes = {node.id: node for node in problem.nodes}
    match problem.downtime_model:
        case "generic":
            return Generic(nodes=nodes, sync_s=problem.sync_s)
        case "storm":
            return Storm.of(problem)
        case "live":
            assert problem.live is not None  # checked when the problem was made
            return Live(price=problem.live, restart=Storm.of(problem))


def _size(deployment: Multiset) -> int:
    return sum(deployment.values())


# --- A.1: pause and resume of one operator ----------------------------------------------------------------


def code_download_s(node: Node, code_bytes: float) -> float:
    """(28), (36): the code from the DataStore to a node."""
    return node.store_up_s + code_bytes / node.store_down_rate + node.store_down_s


def state_upload_s(node: Node, state_bytes: float) -> float:
    """(29): state from a node to the DataStore."""
    return node.store_up_s + state_bytes / node.store_up_rate + node.store_down_s


def state_download_s(node: Node, state_bytes: float) -> float:
    """(30): state from the DataStore to a node."""
    return node.store_up_s + state_bytes / node.store_down_rate + node.store_down_s


def uploaded_bytes(state_bytes: float, node: str, before: Multiset, after: Multiset) -> float:
    """(31): a node gives what its ending replicas hold, and in a scale-out a share of all it has."""
    old, new = _size(before), _size(after)
    leaving = max(before.get(node, 0) - after.get(node, 0), 0)
    share = leaving / old
    if new > old:
        share += before.get(node, 0) * (new - old) / (old * new)
    return state_bytes * share


def downloaded_bytes(state_bytes: float, node: str, before: Multiset, after: Multiset) -> float:
    """(32): a node fetches what its new replicas hold, and its part of what ended elsewhere in a scale-in."""
    old, new = _size(before), _size(after)
    arriving = max(after.get(node, 0) - before.get(node, 0), 0)
    share = arriving / new
    if new < old:
        share += min(before.get(node, 0), after.get(node, 0)) * (old - new) / (old * new)
    return state_bytes * share


@dataclass(frozen=True, slots=True, kw_only=True)
class Generic:
    """Appendix A.1: only the operator that changes is paused."""

    nodes: Mapping[str, Node]
    sync_s: float

    def seconds(self, operator: Operator, before: Multiset, after: Multiset) -> float:
        """(25), (26)."""
        if dict(before) == dict(after):
            return 0.0
        longest = max(
            (self._exchange_s(operator, u, v, before, after) for u in before for v in after if u != v),
            default=0.0,
        )
        return self.sync_s + longest

    def _exchange_s(self, operator: Operator, u: str, v: str, before: Multiset, after: Multiset) -> float:
        """(27)."""
        source, target = self.nodes[u], self.nodes[v]
        fetch_code = code_download_s(target, operator.code_bytes) if v not in before else 0.0
        give = state_upload_s(source, uploaded_bytes(operator.state_bytes, u, before, after))
        take = state_download_s(target, downloaded_bytes(operator.state_bytes, v, before, after))
        spawn = target.spawn_s if after[v] > before.get(v, 0) else 0.0
        return max(fetch_code, give) + take + spawn


# --- A.2: Storm restarts the whole application -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Appendix A.2: any change restarts every operator, so each waits for the slowest restart in place."""

    nodes: Mapping[str, Node]
    sync_s: float
    #: The whole application's code, which one archive holds (36).
    code_bytes: float
    #: Nodes that host any operator at present, hence hold the code.
    hosting: frozenset[str]
    #: The longest t_R(i, U_0) of all operators: the least cost of any change.
    restart_s: float

    @classmethod
    def of(cls, problem: Problem) -> Storm:
        nodes = {node.id: node for node in problem.nodes}
        current = problem.current or {}
        return cls(
            nodes=nodes,
            sync_s=problem.sync_s,
            code_bytes=math.fsum(operator.code_bytes for operator in problem.operators),
            hosting=frozenset(node for placed in current.values() for node in placed),
            restart_s=max(
                (restart_in_place_s(nodes, op, current[op.id], problem.sync_s) for op in problem.operators if current),
                default=0.0,
            ),
        )

    def seconds(self, operator: Operator, before: Multiset, after: Multiset) -> float:
        """(33), seen from a changing operator: the maximum over operators in (10) then includes every t_R."""
        if dict(before) == dict(after):
            return 0.0
        longest = max(
            (self._exchange_s(operator, u, v, before, after) for u in before for v in after if u != v),
            default=0.0,
        )
        return max(self.sync_s + longest, self.restart_s)  # (34)

    def _exchange_s(self, operator: Operator, u: str, v: str, before: Multiset, after: Multiset) -> float:
        """(35), with the bytes of (37) and (38)."""
        source, target = self.nodes[u], self.nodes[v]
        fetch_code = 0.0 if v in self.hosting else code_download_s(target, self.code_bytes)
        give = state_upload_s(source, operator.state_bytes * before[u] / _size(before))
        take = state_download_s(target, operator.state_bytes * after[v] / _size(after))
        return fetch_code + give + take + after[v] * target.spawn_s


def restart_in_place_s(nodes: Mapping[str, Node], operator: Operator, placed: Multiset, sync_s: float) -> float:
    """(39), (40): state goes to the node's swap area and back, and each replica starts again."""

    def on_node(node: Node, replicas: int) -> float:
        held = operator.state_bytes * replicas / _size(placed)
        return held / node.swap_write_rate + held / node.swap_read_rate + replicas * node.spawn_s

    return sync_s + max(on_node(nodes[name], replicas) for name, replicas in placed.items())


# --- live handover ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A handover: a constant, and a time for each byte of state that changes its node. Else a restart."""

    price: LiveDowntime
    restart: Storm

    def seconds(self, operator: Operator, before: Multiset, after: Multiset) -> float:
        if dict(before) == dict(after):
            return 0.0
        if self.restarts(operator, after):
            return self.restart.seconds(operator, before, after)
        return self.price.constant_s + self.price.per_byte_s * operator.state_bytes * moved_share(before, after)

    def restarts(self, operator: Operator, after: Multiset) -> bool:
        """A node would have more replicas than tasks run there, so that an executor has to move."""
        return any(count > self.tasks_on(operator, node) for node, count in after.items())

    def tasks_on(self, operator: Operator, node: str) -> float:
        """Replicas that the node can have without a restart."""
        return math.inf if self.price.tasks is None else self.price.tasks.get(operator.id, {}).get(node, 0)


def moved_share(before: Multiset, after: Multiset) -> float:
    """The share of the key groups that changes its node when each replica owns an equal part."""
    old, new = _size(before), _size(after)
    stays = sum(min(count / old, after.get(node, 0) / new) for node, count in before.items())
    return max(0.0, 1.0 - stays)
