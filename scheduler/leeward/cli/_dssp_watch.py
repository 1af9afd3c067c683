"""The figures of a live run of DSSP, for its page: asked of provider and domains, once a second."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Any

import httpx

from leeward.cli._dssp_universe import Heard, Universe
from leeward.policies.dssp.simulation.setup import Setting

#: Snapshots of the page: one a second.
SNAPSHOTS, SNAPSHOT_S = 300, 1.0
#: Over which the served rate is taken, s.
RECENT_S = 30.0


class Watch:
    """Keeps the figures of the page."""

    def __init__(self, setting: Setting, *, profile: str, discipline: str, rate: float) -> None:
        self._about = {"profile": profile, "discipline": discipline, "rate": rate}
        self._setting, self._began = setting, time.monotonic()
        self._ended: deque[float] = deque(maxlen=100_000)
        self._done = self._partial = 0
        self._classes: list[dict[str, Any]] = []
        self._domains: dict[str, dict[str, Any]] = {}
        names = [one.name for one in setting.classes]
        self._history: dict[str, Any] = {
            "t": deque(maxlen=SNAPSHOTS), "tails": {name: deque(maxlen=SNAPSHOTS) for name in names}, "waiting": {},
            "late": {},
        }  # fmt: skip

    def heard(self, heard: Heard) -> None:
        """A query is over."""
        self._done += 1
        self._partial += not heard.complete
        self._ended.append(time.monotonic())

    async def look(self, client: httpx.AsyncClient, parts: Universe) -> None:
        """Ask provider and domains for their state, once a second; until cancelled."""
        clients = {name: parts.client(name, url) for name, url in parts.domains.items()}
        try:
            while True:
                with suppress(httpx.HTTPError, KeyError, ValueError):
                    self._look_at_classes((await client.get("/state")).json()["services"])
                for name, one in clients.items():
                    try:
                        self._look_at_domain(name, (await one.get("/state", timeout=1.0)).json())
                    except (httpx.HTTPError, KeyError, ValueError):
                        self._domains.setdefault(name, _NOTHING | {"name": name})["answers"] = False
                self._remember()
                await asyncio.sleep(SNAPSHOT_S)
        finally:
            for one in clients.values():
                await one.aclose()

    def _look_at_classes(self, services: dict[str, Any]) -> None:
        self._classes = [{"name": one.name, **services[one.name]} for one in self._setting.classes]

    def _look_at_domain(self, name: str, state: dict[str, Any]) -> None:
        counts, nodes = state["counts"], state["nodes"]
        known = self._domains.get(name, _NOTHING)
        self._domains[name] = {
            "name": name, "started": counts["started"], "late": counts["late"], "answers": True,
            "before": (known["started"], known["late"]),
            **{key: [node[key] for node in nodes] for key in ("waiting", "busy", "pods")},
        }  # fmt: skip

    def _remember(self) -> None:
        history = self._history
        history["t"].append(round(time.monotonic() - self._began, 1))
        for one in self._classes:
            history["tails"][one["name"]].append(one["p_s"])
        for name, one in sorted(self._domains.items()):
            started, late = (one[key] - before for key, before in zip(("started", "late"), one["before"], strict=True))
            history["waiting"].setdefault(name, deque(maxlen=SNAPSHOTS)).append(sum(one["waiting"]))
            history["late"].setdefault(name, deque(maxlen=SNAPSHOTS)).append(late / started if started else None)

    def data(self) -> dict[str, Any]:
        """For the page (dashboard/queries)."""
        now = time.monotonic()
        recent = sum(1 for when in self._ended if when > now - RECENT_S)
        elapsed = now - self._began
        return {
            **self._about, "seconds": elapsed, "served": recent / min(RECENT_S, max(elapsed, 1.0)),
            "done": self._done, "partial": self._partial, "running": True,
            "classes": [{key: one[name] for key, name in _CLASS_KEYS.items()} for one in self._classes],
            "domains": [
                {key: value for key, value in one.items() if key != "before"}
                for _, one in sorted(self._domains.items())
            ],
            "history": {
                name: list(kept) if isinstance(kept, deque) else {key: list(values) for key, values in kept.items()}
                for name, kept in self._history.items()
            },
        }  # fmt: skip

    def summary(self) -> str:
        """Lines for the end of a run."""
        lines = [f"{self._done} queries answered, {self._partial} of them in part"]
        for one in self._classes:
            tail = "no query" if one["p_s"] is None else f"p{one['percent']:g} {1000 * one['p_s']:.0f} ms"
            lines.append(f"class {one['name']}: {tail}, objective {1000 * one['objective_s']:.0f} ms")
        return "\n".join(lines)


#: Key on the page -> in the provider's state.
_CLASS_KEYS = {
    name: name for name in ("name", "objective_s", "percent", "p_s", "median_s", "queries")
} | {"late": "over"}  # fmt: skip
_NOTHING: dict[str, Any] = {"started": 0, "late": 0, "waiting": [], "busy": [], "pods": [], "before": (0, 0)}
