"""An explanation as JSON, for `leeward explain --output json`, the text and the page.

The keys are stable.  Times are in s, costs in $/h, rates in tuples/s, capacities in units; a missing
value is null.  An *answer* has the changes when something is changed and all is solved anew:

    status      optimal | feasible | infeasible | unknown | not asked | evaluated (others fixed, nothing solved)
    F R C T_D   of the other deployment (F as the problem states it), dF dR dC dT_D: less those of the chosen one
    bound       proven lower bound on F;  changes {operator: {node: replicas}}: only operators that differ

The document: the output of `leeward solve`, and weights, bounds, downtime_model,
path [{operator | from to, nodes, seconds, share}],
operators [{id, replicas, k, placed, load, latency, cost, downtime, slack}],
streams [{from, to, rate, delay, cost, slack, links [{from, to, rate}]}],
nodes [{id, capacity, used, placed {operator: replicas}}],
limits [{kind, where, used, limit, slack, tight, binds, step, relaxed: answer, without: answer | null}],
alternatives [{operator, change, node, others, answer}], next_best {operator: {change, node, answer, exact}}.
Of a topology that runs it also has learnt, learnt_age_s and learnt_values (`core/learnt_told.py`).
"""

from __future__ import annotations

import math
from typing import Any

from leeward.policies.edrp.problem.evaluate import Metrics
from leeward.policies.edrp.problem.values import Deployment
from leeward.policies.edrp.questions.explain import Alternative, Explanation, Limit
from leeward.policies.edrp.questions.facts import Hop
from leeward.policies.edrp.questions.whatif import Answer


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """See the module; ready for `json.dumps`."""
    problem, outcome, facts = explanation.problem, explanation.outcome, explanation.facts
    weights, bounds = problem.weights, problem.bounds
    answers = Answers(chosen=outcome.deployment, base=outcome.metrics)
    return {
        "weights": {"r": weights.r, "c": weights.c, "d": weights.d},
        "bounds": {"r": bounds.r, "c": bounds.c, "d": bounds.d},
        "downtime_model": problem.downtime_model if problem.current is not None else None,
        "path": [_hop(hop) for hop in facts.path],
        "operators": [
            {
                "id": op.id,
                "replicas": sum(op.placed.values()),
                "k": problem.operators[problem.operator_index[op.id]].k,
                "placed": dict(op.placed),
                "load": op.load_tps,
                "latency": op.latency_s,
                "cost": op.cost,
                "downtime": op.downtime_s,
                "slack": op.slack_s,
            }
            for op in facts.operators
        ],
        "streams": [
            {
                "from": s.source,
                "to": s.target,
                "rate": s.rate_tps,
                "delay": s.delay_s,
                "cost": s.cost,
                "slack": s.slack_s,
                "links": [{"from": u, "to": v, "rate": rate} for (u, v), rate in s.links.items()],
            }
            for s in facts.streams
        ],
        "nodes": [
            {
                "id": node.id,
                "capacity": node.res,
                "used": facts.used[node.id],
                "placed": {op.id: op.placed[node.id] for op in facts.operators if node.id in op.placed},
            }
            for node in problem.nodes
        ],
        "limits": [answers.limit(limit) for limit in explanation.limits],
        "alternatives": [answers.alternative(alternative) for alternative in explanation.alternatives],
        "next_best": answers.next_best(explanation),
        "seconds_in_all": explanation.seconds,
    }


def _hop(hop: Hop) -> dict[str, Any]:
    ends = {"operator": hop.ends[0]} if len(hop.ends) == 1 else {"from": hop.ends[0], "to": hop.ends[1]}
    return ends | {"nodes": list(hop.nodes), "seconds": hop.seconds, "share": hop.share}


class Answers:
    """Answers as differences from one chosen deployment."""

    def __init__(self, *, chosen: Deployment, base: Metrics) -> None:
        self.chosen = chosen
        self.base = base

    def answer(self, answer: Answer) -> dict[str, Any]:
        """One answer; see the module."""
        document: dict[str, Any] = {"status": answer.status}
        keys = ("F", "R", "C", "T_D")
        if answer.metrics is None:
            document |= dict.fromkeys((*keys, *(f"d{key}" for key in keys)))
        else:
            document |= {key: getattr(answer.metrics, key) for key in keys}
            document |= {f"d{key}": getattr(answer.metrics, key) - getattr(self.base, key) for key in keys}
        document["bound"] = answer.bound
        document["changes"] = {
            name: dict(placed)
            for name, placed in (answer.deployment or {}).items()
            if dict(placed) != dict(self.chosen[name])
        }
        return document

    def limit(self, limit: Limit) -> dict[str, Any]:
        """One limit."""
        return {
            "kind": limit.kind,
            "where": limit.where,
            "used": limit.used,
            "limit": limit.limit,
            "slack": limit.slack,
            "tight": limit.tight,
            "binds": limit.binds(self.base),
            "step": limit.step,
            "relaxed": self.answer(limit.relaxed),
            "without": None if limit.without is None else self.answer(limit.without),
        }

    def alternative(self, alternative: Alternative) -> dict[str, Any]:
        """One alternative."""
        return {
            "operator": alternative.operator,
            "change": alternative.change,
            "node": alternative.node,
            "others": alternative.others,
            "answer": self.answer(alternative.answer),
        }

    def next_best(self, explanation: Explanation) -> dict[str, Any]:
        """For each operator the best deployment seen in which it differs, or null.

        It is exact if all that was solved anew is proven: to differ means to have fewer replicas on some node, or
        more in all.
        """
        result: dict[str, Any] = {}
        for op in explanation.facts.operators:
            own = [a for a in explanation.alternatives if a.operator == op.id]
            anew = [a for a in own if a.others == "solved anew"]
            proven = all(a.answer.status in ("optimal", "infeasible") for a in anew)
            found = [a for a in own if a.answer.metrics is not None]
            if not found:
                result[op.id] = None
                continue
            best = min(found, key=lambda a: a.answer.metrics.F if a.answer.metrics else math.inf)
            result[op.id] = self.alternative(best) | {"exact": proven}
        return result
