"""A policy that is asked about all topologies at once, seen by the loop of each one as a policy of its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from random import Random
from typing import cast

from leeward.control.ports import Post
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Refusal
from leeward.core.policy import Correspondent, JointPolicy

#: Exchanges of letters in one decision, at most.
EXCHANGES = 40


class Joint:
    """Keeps the newest view of each topology. Each loop's question shows all of them to the policy.

    The loop gets its own topology's part of the answer; without one, or where the policy refuses it, the deployment
    stays. For several threads: one asks at a time.
    """

    def __init__(self, policy: JointPolicy, post: Post | None = None) -> None:
        """`post`: of a policy that is a `Correspondent`."""
        self._policy, self._post = policy, post
        self.at_once: bool = getattr(policy, "at_once", False)
        self._lock = threading.Lock()
        self._views: dict[str, ClusterView] = {}
        self._newest: tuple[float, Random] = 0.0, Random(0)

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
            self._newest = now, rng
            plans = self._decide(now, rng)
        answer = plans.get(view.topology, Refusal(reason="the joint policy leaves it as it is"))
        if isinstance(answer, Refusal):
            return Plan(tables=view.tables, placement=view.assignment, reason=answer.reason)
        return answer

    def forget(self, topology: str, *, gone: bool = False) -> None:
        """It is no longer led here. `gone`: it does not run any more, which peers have to hear at once."""
        with self._lock:
            if self._views.pop(topology, None) is not None and gone and self._post is not None:
                self._decide(*self._newest)

    def _decide(self, now: float, rng: Random) -> Mapping[str, Plan | Refusal]:
        """A decision about all, with what peers answer."""
        views = [self._views[name] for name in sorted(self._views)]
        plans = self._policy.decide_all(views, now=now, rng=rng)
        if self._post is None:
            return plans
        policy = cast(Correspondent, self._policy)
        for _ in range(EXCHANGES):
            letters = policy.letters()
            if not letters:
                break
            for sender, answer in self._post.exchange(letters):
                policy.receive(sender, answer)
            plans = policy.decide_all(views, now=now, rng=rng)
        return plans
