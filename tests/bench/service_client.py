"""A client of the service, for `service_scale.py`: how long answers take, and how late it hears of events.

    python tests/bench/service_client.py URL TOPOLOGY AHEAD_S SECONDS

`AHEAD_S`: of the service's clock before this one; it listens to events for so many seconds. Prints JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import httpx

TIMES = 20


def client(url: str, name: str, ahead: float, seconds: float) -> dict[str, Any]:
    paths = ("", "api/topologies", f"api/topologies/{name}", f"api/topologies/{name}/nodes", "metrics")
    with httpx.Client(base_url=url, timeout=60) as session:
        answers = [asked(session, path) for path in paths]
        late = lateness(session, ahead, seconds)
    return {"answers": answers, "events": late}


def asked(session: httpx.Client, path: str) -> dict[str, Any]:
    times, size = [], 0
    for _ in range(TIMES):
        began = time.perf_counter()
        answer = session.get(path)
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, answer.text
        size = len(answer.content)
    return {"path": f"/{path}", "median_ms": round(statistics.median(times), 2), "slowest_ms": round(max(times), 2),
            "bytes": size}  # fmt: skip


def lateness(session: httpx.Client, ahead: float, seconds: float) -> dict[str, Any]:
    """Between an event and the moment in which a listener of all topologies has it; those of before left out."""
    late, began = [], time.time()
    with session.stream("GET", "api/events", timeout=httpx.Timeout(60, read=60)) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                late.append(time.time() + ahead - json.loads(line[6:])["t"])
            if time.time() - began > seconds:
                break
    late.sort()
    return {"heard": len(late), "per_s": round(len(late) / seconds, 1), "median_ms": round(1000 * late[len(late) // 2]),
            "worst_ms": round(1000 * late[-1])}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(client(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))))
