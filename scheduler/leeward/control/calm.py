"""Guards against restlessness: no plan in the cool-down, no way back soon, no end of a replica needed just now.

Pure. It remembers since when the policy wants fewer replicas of a component, and the replicas by node that a component
had before its last change. A need that stops in between begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from leeward.control.limits import changes, only_ends, utilisation
from leeward.core.model import ClusterView
from leeward.core.placing import must_leave
from leeward.core.plan import Change, Plan
from leeward.core.settings import Settings

#: Share of its time for which a component's replicas are busy, from which on more of them cannot wait.
RELIEF = 0.85


class Calm:
    """See the module. Times are seconds of one clock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._until = 0.0
        self._fewer: dict[str, float] = {}  # component -> since when
        self._left: dict[str, tuple[float, Mapping[str, int]]] = {}  # component -> (when, node -> replicas before)

    def ended(self, now: float, left: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """A reconfiguration is over: the cool-down begins, and what was wanted before does not count.

        `left`: the replicas by node that each changed component had before; None: nothing was carried out.
        """
        self._until = now + self._settings.cool_down_s
        self._fewer.clear()
        self._left |= {name: (now, dict(counts)) for name, counts in (left or {}).items()}

    def cools(self, now: float) -> bool:
        """It is the cool-down."""
        return now < self._until

    def heard(self, plan: Plan, view: ClusterView, now: float) -> None:
        """The policy's newest wish, whether it is carried out or not."""
        wanted = {change.component for change in changes(plan, view) if change.kind == "scale-in"}
        self._fewer = {name: self._fewer.get(name, now) for name in sorted(wanted)}

    def objection(self, plan: Plan, view: ClusterView, now: float) -> str:
        """Why it is too early for this plan; empty if it is not."""
        if self.cools(now):
            return f"cool-down: {self._until - now:.1f} s are left of {self._settings.cool_down_s:g} s"
        return self._too_early(plan, view, now) or self._back(plan, view, now)

    def _too_early(self, plan: Plan, view: ClusterView, now: float) -> str:
        early = {
            name: wanted_s for name in only_ends(plan, view)
            if (wanted_s := now - self._fewer.get(name, now)) < self._settings.scale_down_s
        }  # fmt: skip
        if not early:
            return ""
        name = min(early, key=lambda name: (early[name], name))
        return (
            f"fewer replicas of {name!r} are wanted for {early[name]:.0f} s, less than scale_down_s "
            f"{self._settings.scale_down_s:g}"
        )

    def _back(self, plan: Plan, view: ClusterView, now: float) -> str:
        """Why it is too early to go back; "" if no component does, or if the plan answers a load.

        Back is to the replicas by node before the last change; after one that added replicas, to any fewer. It answers
        a load if some component gets more replicas that either is no return, or is busy for RELIEF of the time by now.
        """
        if view.first or must_leave(view) or plan.estimate.objective_now == math.inf:  # the present one breaks a bound
            return ""
        wanted = changes(plan, view)
        back = {change.component: why for change in wanted if (why := self._return_of(change, now))}
        grown = [change.component for change in wanted if change.kind == "scale-out"]
        if not back or any(name not in back or utilisation(view, name) >= RELIEF for name in grown):
            return ""
        name = min(back)
        return f"{name!r} {back[name]}, less than no_return_s {self._settings.no_return_s:g}"

    def _return_of(self, change: Change, now: float) -> str:
        """The change that it undoes, and when that was; "" if it undoes nothing, or it is long ago."""
        at, before = self._left.get(change.component, (-math.inf, {}))
        had, has = sum(before.values()), sum(change.before.values())
        if now - at >= self._settings.no_return_s or (
            change.after != before and not (has > had and change.kind == "scale-in")
        ):
            return ""
        what = "was given more replicas" if has > had else "was given fewer replicas" if has < had else "was moved"
        return f"{what} {now - at:.0f} s ago"
