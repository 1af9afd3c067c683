"""Guards against restlessness: no plan in the cool-down, and no replica is ended before it was idle for long. Pure.

It remembers since when the policy wants fewer replicas of a component. A need that stops in between begins anew.
"""

from __future__ import annotations

from leeward.control.limits import changes, only_ends
from leeward.core.model import ClusterView
from leeward.core.plan import Plan
from leeward.core.settings import Settings


class Calm:
    """See the module. Times are seconds of one clock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._until = 0.0
        self._fewer: dict[str, float] = {}  # component -> since when

    def ended(self, now: float) -> None:
        """A reconfiguration is over: the cool-down begins, and what was wanted before does not count."""
        self._until = now + self._settings.cool_down_s
        self._fewer.clear()

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
