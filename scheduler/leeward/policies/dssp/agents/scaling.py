"""How many pods a node has: more while too many subtasks start late, fewer when one pod less would do.

The paper leaves this open.  A share of late starts above `most` is what its objective does not allow for; a node that
has been below a tenth of it for several periods, and whose pods would still be idle often enough with one less, gives
one back.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """Of a domain."""

    most: float = 0.02  #: share of late starts that is allowed (the paper tolerates 1 to 2 %)
    period_s: float = 10.0
    calm: int = 6  #: periods without need before a pod is given back
    busy: float = 0.6  #: part of the time that the remaining pods may be busy then
    most_pods: int = 4


@dataclass(slots=True)
class NodeScaling:
    """One node. Started, late and busy time are counted over a period."""

    settings: ScalingSettings
    began: float
    started: int = 0
    late: int = 0
    busy_s: float = 0.0
    calm: int = 0

    def record(self, *, late: bool) -> None:
        """A subtask has started."""
        self.started += 1
        self.late += late

    def decide(self, pods: int, now: float, *, least: int = 1, most: int | None = None) -> int:
        """The number of pods from now on, between `least` and `most` (None: of the settings); looks once a period."""
        settings, elapsed = self.settings, now - self.began
        if elapsed < settings.period_s:
            return pods
        share = self.late / max(1, self.started)
        used = self.busy_s / elapsed
        self.began, self.started, self.late, self.busy_s = now, 0, 0, 0.0
        if share > settings.most:
            self.calm = 0
            return max(pods, min(pods + 1, settings.most_pods if most is None else most))
        spare = share <= settings.most / 10 and pods > least and used <= settings.busy * (pods - 1)
        self.calm = self.calm + 1 if spare else 0
        if self.calm < settings.calm:
            return pods
        self.calm = 0
        return pods - 1
