"""Settings of fragments, and the facts that the model of recovery takes from them."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core import options
from leeward.core.topology_conf import STORE_OPTIONS
from leeward.policies.agiledart.recovery.tuning import Facts

_MB, _DAY_S = 1e6, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentSettings:
    """Of `leeward.state.options`. With `recover_s` m, k and the time to the next checkpoint follow from its size."""

    m: int = options.setting(4, "", "fragments that hold the state; any m of all rebuild it", least=1)
    k: int = options.setting(2, "", "parity fragments: so many holders may fail")
    recover_s: float = options.setting(
        0.0, "s", "state and input are to be back after so long; 0, or where that cannot be kept: m and k as given"
    )
    loss: float = options.setting(1e-6, "", "most probability that the state is lost when its node fails")
    uplink: float = options.setting(10.0, "MB/s", "of a neighbour", least=1e-6)
    download: float = options.setting(100.0, "MB/s", "of a node that rebuilds", least=1e-6)
    upload: float = options.setting(10.0, "MB/s", "of a node that writes checkpoints", least=1e-6)
    failures: float = options.setting(1.0, "1/day", "of one neighbour")
    silent_s: float = options.setting(0.5, "s", "a holder without an answer for so long is passed over", least=0.01)
    lost_s: float = options.setting(10.0, "s", "and counts as lost after so long", least=0.01)

    def __post_init__(self) -> None:
        options.check(self, where=f"{STORE_OPTIONS.name}.")

    def facts(self, neighbours: int) -> Facts:
        """The network, for the model."""
        return Facts(
            uplinks=(self.uplink * _MB,) * neighbours, download=self.download * _MB, upload=self.upload * _MB,
            failures=self.failures / _DAY_S,
        )  # fmt: skip
