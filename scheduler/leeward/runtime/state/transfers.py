"""A task's transfers of state to and from the DataStore, counted and timed. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Transfers:
    """Totals since the process began; fields as `core.metrics.TaskMetrics` has them."""

    up_bytes: int = 0
    up_s: float = 0.0
    down_bytes: int = 0
    down_s: float = 0.0
    trip_s: float = 0.0  #: time of the last small command

    def went_up(self, size: int, seconds: float) -> None:
        """So many bytes were written."""
        self.up_bytes, self.up_s = self.up_bytes + size, self.up_s + seconds

    def came_down(self, size: int, seconds: float) -> None:
        """So many bytes were read."""
        self.down_bytes, self.down_s = self.down_bytes + size, self.down_s + seconds

    def figures(self) -> dict[str, Any]:
        """Field -> value; another thread may count meanwhile."""
        return asdict(self)
