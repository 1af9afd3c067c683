"""Settings of the policy for bi-modal links."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.options import check, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BiModalSettings:
    """See the module. Construction checks; raises ConfigError."""

    agents: str = setting("", "", "file of the agents (docs/bimodal.md), with the node of each server", local=True)
    secret: str = setting("", "", "file with the secret that all agents share", local=True)
    retry_s: float = setting(30.0, "s", "between two tries to map a topology that the agents refuse", least=1.0)

    def __post_init__(self) -> None:
        check(self, where="bimodal.")
