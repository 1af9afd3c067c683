"""Settings of S-EDRP (the paper's symbols: spec of EDRP, sections 4 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leeward.core.errors import ConfigError
from leeward.core.options import check, setting

METHODS = ("both", "restricted", "auto", "exact", "compact", "ilp", "near")
CURVES = ("learnt", "mm1")
DOWNTIME_MODELS = ("auto", "live", "storm", "generic")


@dataclass(frozen=True, slots=True, kw_only=True)
class EdrpSettings:
    """See the module. Construction checks; raises ConfigError."""

    w_r: float = setting(0.45, "", "weight of response time")
    w_c: float = setting(0.45, "", "weight of cost")
    w_d: float = setting(0.1, "", "weight of downtime")
    r_max_s: float = setting(
        0.150, "s", "bound of the response time; yields where C_max or the load leave none", least=1e-6
    )
    c_max: float = setting(15.0, "$/h", "bound of the cost; exceeded only as far as the load takes more", least=1e-6)
    t_d_max_s: float = setting(60.0, "s", "bound of the downtime of one reconfiguration", least=1e-6)
    t_syn_s: float = setting(6.0, "s", "time to synchronise a reconfiguration")
    t_spawn_s: float = setting(0.5, "s", "time to start a replica")
    downtime_model: str = setting(
        "auto", "", "live: as handovers are measured, A.2 where an executor moves; storm: A.2; generic: A.1; "
        "auto: live if mode is, else storm", choices=DOWNTIME_MODELS,
    )  # fmt: skip
    link_cost: float = setting(0.0, "$/h per tuple/s", "cost of traffic between two nodes (C_uv)")
    link_delay_s: float = setting(0.0, "s", "one-way delay between two nodes where none was measured")
    default_rate: float = setting(1000.0, "tuples/s", "service rate taken until one was measured", least=1e-6)
    curve: str = setting(
        "learnt", "", "response time of a replica by its rate: learnt: as its tuples were timed, once that is sure "
        "enough; mm1: M/M/1 with the measured service rate", choices=CURVES,
    )  # fmt: skip
    curve_error: float = setting(
        0.2, "", "a learnt curve is used if its standard error at the present rate is at most this share of it"
    )
    method: str = setting("both", "", "how S-EDRP is solved", choices=METHODS)
    solve_limit_s: float = setting(8.0, "s", "time for solving; then the best so far", least=0.1)
    exact_limit_s: float = setting(4.0, "s", "of that, with method both: most for the exact search", least=0.1)
    gap: float = setting(0.0, "", "a plan this near to the best one, relative to the objective, is good enough")
    rebalance_over: float = setting(0.25, "", "groups change owners if a replica's load is this share over the mean")
    headroom: float = setting(0.1, "", "plan for this share more than the measured rates")
    drain_s: float = setting(30.0, "s", "plan to work off a backlog in this time", least=1.0)
    tie: float = setting(
        0.02, "", "to even out load, the present deployment stays if its objective is within this of the best"
    )
    seed: int = setting(0, "", "seed of the solver")

    def __post_init__(self) -> None:
        check(self, where="edrp.")
        total = self.w_r + self.w_c + self.w_d
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ConfigError(
                f"settings edrp.w_r, w_c, w_d are {self.w_r:g}, {self.w_c:g}, {self.w_d:g}; their sum is {total:g}.",
                remedy="Make the sum 1.",
            )
