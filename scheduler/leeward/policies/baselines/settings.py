"""Settings of the baselines."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.options import check, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenSettings:
    """Of `even`. Construction checks; raises ConfigError."""

    headroom: float = setting(0.1, "", "plan for this share more than the measured rates")
    target: float = setting(0.7, "", "utilisation that a replica is planned for", least=0.05)
    slack: float = setting(0.15, "", "a replica ends only if a load greater by this share does not need it either")

    def __post_init__(self) -> None:
        check(self, where="even.")
