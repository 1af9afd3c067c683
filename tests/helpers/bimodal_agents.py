"""Agents of bi-modal links: their file, their secret and a task."""

from __future__ import annotations

from typing import Any

SECRET = "0123456789abcdef0123456789abcdef"


def document(base_port: int) -> dict[str, Any]:
    """A ring of six. Service 0 is on 1 and 5, service 1 on 2 and 4; each has room for one task, and each link, too."""
    hosted: dict[int, list[int]] = {0: [], 1: [0], 2: [1], 3: [], 4: [1], 5: [0]}
    return {
        "format": "bimodal-agents/1", "direction": "each",
        "servers": [
            {"id": v, "cpu": 1, "services": services, "uplink": 0, "address": f"127.0.0.1:{base_port + v}"}
            for v, services in hosted.items()
        ],
        "links": [{"a": v, "b": (v + 1) % 6, "bandwidth": 1, "cost": 1, "delay": 0.001} for v in range(6)],
    }  # fmt: skip


def task(name: str = "t") -> dict[str, Any]:
    return {
        "name": name, "source": 0, "delivery": 3, "services": [0, 1], "cpu": [1, 1], "bandwidth": [1, 1, 1],
        "max_null": 3,
    }  # fmt: skip
