"""One node of the overlay as a process: prints the number of its address, and runs until it is ended.

python -m tests.contract.overlay_node NAME KEY HEARTBEAT_S ZONE [SEED_NUMBER ...]
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time

from leeward.adapters.datagrams import DatagramProcess, number_of
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import KINDS, contact
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer


def main() -> None:
    name, key, heartbeat_s, zone, *seeds = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        me = number_of(*probe.getsockname())
    times = Times(heartbeat=float(heartbeat_s), ack=float(heartbeat_s) / 10)
    peer = Peer(
        contact(id_of(name), me), times=times, seeds=[int(seed) for seed in seeds], born=time.time_ns(), zone=zone
    )
    process = DatagramProcess(peer, KINDS, key.encode(), seed=me, tick_s=times.heartbeat / 20)

    async def work() -> None:
        running = asyncio.create_task(process.run(asyncio.Event()))
        print(me, flush=True)
        await running

    asyncio.run(work())


if __name__ == "__main__":
    main()
