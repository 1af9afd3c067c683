"""A policy that is asked about all topologies at once, seen by the loop of each one as a policy of its own."""

from __future__ import annotations

import threading
from random import Random

from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Refusal
from leeward.core.policy import JointPolicy


class Joint:
    """Keeps the newest view of each topology. Each loop's question shows all of them to the policy.

    The loop gets its own topology's part of the answer; without one, or where the policy refuses it, the deployment
    stays. For several threads: one asks at a time.
    """

    def __init__(self, policy: JointPolicy) -> None:
        self._policy = policy
        self.at_once: bool = getattr(policy, "at_once", False)
        self._lock = threading.Lock()
        self._views: dict[str, ClusterView] = {}

    def prepare(self) -> None:
        """Before anything is asked."""
        prepare = getattr(self._policy, "prepare", None)
        if prepare is not None:
            with self._lock:
                prepare()

    def decide(self, view: ClusterView, *, now: float, rng: Random) -> Plan:
        """This topology's part of a decision about all that have asked so far."""
        with self._lock:
            self._views[view.topology] = view
            views = [self._views[name] for name in sorted(self._views)]
            plans = self._policy.decide_all(views, now=now, rng=rng)
        answer = plans.get(view.topology, Refusal(reason="the joint policy leaves it as it is"))
        if isinstance(answer, Refusal):
            return Plan(tables=view.tables, placement=view.assignment, reason=answer.reason)
        return answer

    def forget(self, topology: str) -> None:
        """It is no longer led here."""
        with self._lock:
            self._views.pop(topology, None)
