"""Settings of AgileDART's policy; the paper's symbols are those of `scaling/health.py`."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.errors import ConfigError
from leeward.core.options import check, setting

RULES = ("guarded", "secant")
STORM, DATAFLOW = PLACES = "storm", "dataflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgileDartSettings:
    """See the module. Construction checks; raises ConfigError."""

    place: str = setting(STORM, "", "places a topology first; dataflow: along JOINs in an overlay", choices=PLACES)
    rule: str = setting("guarded", "", "finds the number of replicas; secant: the paper's", choices=RULES)
    drain_s: float = setting(30.0, "s", "guarded: work off a queue in this time (T_drain)", least=1.0)
    window: int = setting(3, "", "guarded: measurements, one each period, that are averaged", least=1)
    worth: float = setting(0.8, "", "share of its service rate that a replica is worth (r)", least=0.05)
    a: float = setting(0.5, "", "secant: weight of the rate, the rest is the queue's (alpha)")
    q: float = setting(10.0, "tuples", "secant: queue length that a replica is worth", least=1e-6)
    busy: float = setting(0.7, "", "replicas that are busy for this share of the time are bound by compute", least=0.05)
    waits_s: float = setting(2.0, "s", "a longer backlog before replicas that are not busy is the network's", least=0.1)

    def __post_init__(self) -> None:
        check(self, where="agiledart.")
        for name in ("worth", "a", "busy"):
            if getattr(self, name) > 1:
                raise ConfigError(
                    f"setting 'agiledart.{name}' is {getattr(self, name)!r}.", remedy="Give a share, at most 1."
                )
