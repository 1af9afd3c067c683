"""A domain whose two nodes are a topology, its registry and a provider as processes, and queries for them.

    python -m tests.cluster.asking REDIS_URL STREAM PORT OUT

Asks until OUT/stop is there, and at least LEAST times. A line of OUT/answers.jsonl is what a query got.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from leeward.cli import _dssp_universe
from leeward.cli._dssp_universe import open_services, universe
from leeward.policies.dssp.experiments.live_setup import LOAD, domain_document
from leeward.policies.dssp.simulation.setup import QueryClass, Setting

#: Queries at least, each to both nodes; queries/s.
LEAST, NODES, RATE = 100, 2, 10.0
#: Subtasks of each node by which the domain measures it, before the first query.
CALIBRATE = 20
#: Longer than a restart of the topology.
OBJECTIVE_S, PATIENCE_S = 90.0, 120.0

SETTING = Setting(
    name="sensing", means=np.full((1, NODES), 0.05), shape="uniform",
    classes=(QueryClass(name="all", share=1.0, objective_s=OBJECTIVE_S, rank=0, domains=1, nodes=NODES),),
)  # fmt: skip


def handing(redis_url: str, stream: str) -> Any:
    """`domain_document`, of a domain without a node of its own."""

    def document(*arguments: Any, **options: Any) -> dict[str, Any]:
        found = domain_document(*arguments, **options)
        del found["emulated"]
        for node in found["nodes"]:
            node |= {"topology": {"redis": redis_url, "stream": stream}, "pods": 500}
        return found | {"calibrate": CALIBRATE, "patience_s": PATIENCE_S}

    return document


async def ask(client: httpx.AsyncClient, out: Path) -> None:
    """See the module."""
    await open_services(client, SETTING, RATE)

    async def one() -> None:
        answer = await client.post("/queries", json={"service": "all"}, timeout=2 * OBJECTIVE_S)
        with (out / "answers.jsonl").open("a") as file:
            file.write(answer.text.strip() + "\n")

    tasks = []
    while len(tasks) < LEAST or not (out / "stop").exists():
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(1 / RATE)
    await asyncio.gather(*tasks)


def main(redis_url: str, stream: str, port: str, out: str) -> None:
    """See the module."""
    _dssp_universe.domain_document = handing(redis_url, stream)
    where = Path(out)
    with universe(SETTING, discipline="dssp-edfq", seed=1, port=int(port), tls=False, out=where) as made:

        async def begin() -> None:
            async with made.client(LOAD, made.provider) as client:
                await ask(client, where)

        asyncio.run(begin())
    (where / "ended").write_text(json.dumps(True))


if __name__ == "__main__":
    main(*sys.argv[1:])
