"""Checks that a `Statement` is well formed.  Every check names the field, its value and what to do.

Value ranges of single fields come first, then references between them, then what takes the whole problem:
cycles, operators that nobody feeds, and capacity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from leeward.core.fields import FieldError, check_number
from leeward.policies.edrp.problem.latency import MG1, MM1, Table
from leeward.policies.edrp.problem.polynomial import Polynomial, check_polynomial
from leeward.policies.edrp.problem.values import DOWNTIME_MODELS, Deployment, Node, Operator, Statement

#: How far the weights may be from summing to 1.
WEIGHT_TOLERANCE = 1e-6
#: Slack for sums of demands that are not whole numbers.
CAPACITY_TOLERANCE = 1e-9


def check_statement(problem: Statement) -> None:
    """Raises `FieldError` for the first thing that is wrong."""
    for position, node in enumerate(problem.nodes):
        _check_node(f"nodes[{position}]", node)
    for position, operator in enumerate(problem.operators):
        _check_operator(f"operators[{position}]", operator)
    _check_ids("nodes", [node.id for node in problem.nodes])
    _check_ids("operators", [operator.id for operator in problem.operators])
    _check_matrix("delay", problem.delay_s, len(problem.nodes))
    if isinstance(problem.link_cost, float | int):
        check_number("link_cost", problem.link_cost)
    else:
        _check_matrix("link_cost", problem.link_cost, len(problem.nodes))
    _check_goal(problem)
    _check_references(problem)
    _check_graph(problem)
    _check_capacity(problem)


def _check_node(field: str, node: Node) -> None:
    check_number(f"{field}.res", node.res)
    check_number(f"{field}.speedup", node.speedup, positive=True)
    check_number(f"{field}.t_spawn", node.spawn_s)
    check_number(f"{field}.ds_up", node.store_up_s)
    check_number(f"{field}.ds_down", node.store_down_s)
    check_number(f"{field}.r_up", node.store_up_rate, positive=True)
    check_number(f"{field}.r_down", node.store_down_rate, positive=True)
    check_number(f"{field}.ls_write", node.swap_write_rate, positive=True)
    check_number(f"{field}.ls_read", node.swap_read_rate, positive=True)


def _check_operator(field: str, operator: Operator) -> None:
    if operator.k < 1:
        raise FieldError(f"{field}.k", operator.k, "must be 1 or more", remedy="allow at least one replica")
    check_number(f"{field}.cost", operator.cost)
    check_number(f"{field}.res", operator.res)
    check_number(f"{field}.state", operator.state_bytes)
    check_number(f"{field}.code", operator.code_bytes)
    check_number(f"{field}.source_rate", operator.source_rate)
    if operator.allowed is not None and not operator.allowed:
        raise FieldError(
            f"{field}.allowed", [], "no node may host it", remedy="name at least one node, or null for all"
        )
    if isinstance(operator.curve, MM1):
        check_number(f"{field}.mu", operator.curve.mu, positive=True)
    elif isinstance(operator.curve, MG1):
        check_number(f"{field}.queue.mu", operator.curve.mu, positive=True)
        check_number(f"{field}.queue.rest", operator.curve.rest)
        check_number(f"{field}.queue.growth", operator.curve.growth)
    elif isinstance(operator.curve, Table):
        _check_table(f"{field}.latency", operator.curve.values_s, operator.k)
    elif isinstance(operator.curve, Polynomial):
        check_polynomial(f"{field}.polynomial", operator.curve)


def _check_table(field: str, values_s: Sequence[float], k: int) -> None:
    if len(values_s) < k:
        raise FieldError(
            field,
            list(values_s),
            f"has {len(values_s)} values for k = {k}",
            remedy="give one for each of 1 .. k",
        )
    for position, value in enumerate(values_s):
        if math.isnan(value) or value < 0:
            raise FieldError(f"{field}[{position}]", value, "must be 0 or more", remedy="give seconds, or null")
        if position and value > values_s[position - 1]:
            raise FieldError(
                f"{field}[{position}]",
                value,
                "is greater than the value for one replica less, but response time grows with the rate",
                remedy="give values that do not increase",
            )


def _check_ids(field: str, ids: Sequence[str]) -> None:
    if not ids:
        raise FieldError(field, [], "is empty", remedy="give at least one")
    for name, count in Counter(ids).items():
        if name == "":
            raise FieldError(field, name, "an id is empty", remedy="give each a name")
        if count > 1:
            raise FieldError(field, name, f"the id is used {count} times", remedy="make the ids unique")


def _check_matrix(field: str, rows: Sequence[Sequence[float]], size: int) -> None:
    if len(rows) != size:
        raise FieldError(
            field,
            f"{len(rows)} rows",
            f"there are {size} nodes",
            remedy=f"give {size} rows of {size} numbers",
        )
    for u, row in enumerate(rows):
        if len(row) != size:
            raise FieldError(
                f"{field}[{u}]",
                f"{len(row)} numbers",
                f"there are {size} nodes",
                remedy=f"give {size} numbers",
            )
        # one pass in C for the common case; the loop only finds out which entry is to blame
        if not (min(row) >= 0 and math.isfinite(math.fsum(row))):
            for v, value in enumerate(row):
                check_number(f"{field}[{u}][{v}]", value)
        if row[u] != 0:
            raise FieldError(
                f"{field}[{u}][{u}]", row[u], "a node talks to itself without delay or cost", remedy="write 0"
            )


def _check_goal(problem: Statement) -> None:
    weights, bounds = problem.weights, problem.bounds
    for name in ("r", "c", "d"):
        check_number(f"weights.{name}", getattr(weights, name))
        check_number(f"bounds.{name}", getattr(bounds, name), positive=True)
    total = weights.r + weights.c + weights.d
    if abs(total - 1.0) > WEIGHT_TOLERANCE:
        raise FieldError("weights", total, "the weights do not sum to 1", remedy="divide each by their sum")
    check_number("t_syn", problem.sync_s)
    if problem.downtime_model not in DOWNTIME_MODELS:
        raise FieldError(
            "downtime_model",
            problem.downtime_model,
            "is not a downtime model",
            remedy=f"choose one of {', '.join(DOWNTIME_MODELS)}",
        )
    if problem.downtime_model == "live" and problem.live is None:
        raise FieldError(
            "live", None, "the downtime model 'live' needs it", remedy="give live.constant and live.per_byte"
        )
    if problem.live is not None:
        check_number("live.constant", problem.live.constant_s)
        check_number("live.per_byte", problem.live.per_byte_s)
        _check_tasks(problem, problem.live.tasks or {})


def _check_known(field: str, name: str, known: Iterable[str], kind: str) -> None:
    if name not in known:
        raise FieldError(field, name, f"there is no such {kind}", remedy=f"use the id of a {kind}, or add it")


def _check_tasks(problem: Statement, tasks: Deployment) -> None:
    for name, running in tasks.items():
        _check_known(f"live.tasks.{name}", name, problem.operator_index, "operator")
        for node, count in running.items():
            field = f"live.tasks.{name}.{node}"
            _check_known(field, node, problem.node_index, "node")
            if count < 0:
                raise FieldError(field, count, "is a negative number of tasks", remedy="give 0 or more")


def _check_references(problem: Statement) -> None:
    for position, operator in enumerate(problem.operators):
        for place, node in enumerate(operator.allowed or ()):
            _check_known(f"operators[{position}].allowed[{place}]", node, problem.node_index, "node")
    seen: set[tuple[str, str]] = set()
    for position, stream in enumerate(problem.streams):
        field = f"streams[{position}]"
        _check_known(f"{field}.from", stream.source, problem.operator_index, "operator")
        _check_known(f"{field}.to", stream.target, problem.operator_index, "operator")
        check_number(f"{field}.rate", stream.rate)
        pair = (stream.source, stream.target)
        if pair in seen:
            raise FieldError(field, pair, "a second stream between these two", remedy="add the rates up in one")
        seen.add(pair)
    for number, names in enumerate(problem.apart):
        for place, name in enumerate(names):
            _check_known(f"apart[{number}][{place}]", name, problem.operator_index, "operator")
    _check_current(problem)


def _check_current(problem: Statement) -> None:
    if problem.current is None:
        return
    for name, placed in problem.current.items():
        _check_known(f"current.{name}", name, problem.operator_index, "operator")
        if not placed:
            raise FieldError(f"current.{name}", {}, "no replica", remedy="name a node, or leave `current` out")
        for node, replicas in placed.items():
            _check_known(f"current.{name}.{node}", node, problem.node_index, "node")
            if replicas < 1:
                raise FieldError(
                    f"current.{name}.{node}",
                    replicas,
                    "must be 1 or more",
                    remedy="leave out nodes without replicas",
                )
    for operator in problem.operators:
        if operator.id not in problem.current:
            raise FieldError(
                "current",
                operator.id,
                "this operator has no present deployment, though others have one",
                remedy="name the nodes of every operator, or leave `current` out",
            )


def _check_graph(problem: Statement) -> None:
    order = problem.topological_order
    if len(order) < len(problem.operators):
        stuck = sorted(op.id for op in problem.operators if problem.operator_index[op.id] not in set(order))
        raise FieldError("streams", stuck, "the streams form a cycle", remedy="remove a stream of the cycle")
    fed = {stream.target for stream in problem.streams}
    for position, operator in enumerate(problem.operators):
        field = f"operators[{position}].source_rate"
        if operator.id in fed and operator.source_rate > 0:
            raise FieldError(
                field,
                operator.source_rate,
                f"operator {operator.id} is fed by a stream, so it is not a source",
                remedy="set it to 0, or remove the streams into it",
            )
        if operator.id not in fed and operator.source_rate == 0:
            raise FieldError(
                field,
                operator.source_rate,
                f"nobody feeds operator {operator.id}",
                remedy="add a stream to it, or a source_rate > 0 if it is a source",
            )


def _check_capacity(problem: Statement) -> None:
    """One replica of each must fit: for each set of candidates, what must go there against its capacity."""
    for position, (operator, nodes) in enumerate(zip(problem.operators, problem.candidates, strict=True)):
        largest = max(problem.nodes[u].res for u in nodes)
        if operator.res > largest + CAPACITY_TOLERANCE:
            raise FieldError(
                f"operators[{position}].res",
                operator.res,
                f"no node that may host {operator.id} has so much capacity (the largest has {largest:g})",
                remedy="raise nodes[].res or lower the demand",
            )
    for nodes in sorted(set(problem.candidates), key=len):
        inside = set(nodes)
        confined = [op for op, own in zip(problem.operators, problem.candidates, strict=True) if inside.issuperset(own)]
        demand = math.fsum(op.res for op in confined)
        capacity = math.fsum(problem.nodes[u].res for u in nodes)
        if demand > capacity + CAPACITY_TOLERANCE * len(confined):
            where = "all nodes" if len(nodes) == len(problem.nodes) else ", ".join(problem.nodes[u].id for u in nodes)
            names = ", ".join(op.id for op in confined)
            raise FieldError(
                "nodes[].res",
                capacity,
                f"one replica of each of {names} needs {demand:g} units on {where}",
                remedy=f"add {demand - capacity:g} units there, or allow other nodes",
            )
