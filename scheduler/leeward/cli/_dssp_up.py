"""The run of `leeward dssp up`: the testbed as processes, a load generator, and a page."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import typer

from leeward.adapters.organisations.serving import application, listen, serve
from leeward.cli._common import sigterm_interrupts
from leeward.cli._dssp_universe import HOST, Universe, generate, open_services, universe
from leeward.cli._dssp_watch import Watch
from leeward.dashboard.queries.page import routes
from leeward.local import places
from leeward.policies.dssp.experiments.live_setup import asked
from leeward.policies.dssp.simulation.setup import Setting, queries, testbed

PROFILES: dict[str, Callable[[], Setting]] = {"testbed": testbed}
#: Queries that are drawn at a time.
DRAWN = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Of the load generator."""

    setting: Setting
    rate: float  #: queries/s
    seconds: float  #: 0: until stopped
    seed: int


def run_up(
    load: Load, *, profile: str, discipline: str, port: int, tls: bool, scaling: bool, out: Path,
    stop: Callable[[], asyncio.Event],
) -> None:  # fmt: skip
    """Until `stop`, or for the seconds of the load. Raises LeewardError."""
    sigterm_interrupts()
    listener = listen(HOST, port)  # before anything is started: the port may be taken
    watch = Watch(load.setting, profile=profile, discipline=discipline, rate=load.rate)
    with universe(
        load.setting, discipline=discipline, seed=load.seed, port=port + 1, tls=tls, out=out, scaling=scaling
    ) as parts:
        asyncio.run(_run(parts, watch, load, listener, stop))
    typer.echo(watch.summary())


async def _run(
    parts: Universe, watch: Watch, load: Load, listener: socket.socket, stop: Callable[[], asyncio.Event]
) -> None:
    ending, server_end = stop(), asyncio.Event()
    page = asyncio.create_task(serve(application(routes(watch.data, places.web())), listener, server_end))
    typer.echo(f"page: http://{HOST}:{listener.getsockname()[1]}  (Ctrl-C ends everything)", err=True)
    try:
        async with parts.client("load", parts.provider) as client:
            typer.echo("the domains measure their idle nodes", err=True)
            opening = asyncio.create_task(open_services(client, load.setting, load.rate))
            waiting = asyncio.create_task(ending.wait())
            await asyncio.wait({opening, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                return
            await opening
            typer.echo(f"queries come, {load.rate:g} a second", err=True)
            await _generate(client, parts, watch, load, ending)
    finally:
        server_end.set()
        await page


async def _generate(
    client: httpx.AsyncClient, parts: Universe, watch: Watch, load: Load, ending: asyncio.Event
) -> None:
    looking, seed = asyncio.create_task(watch.look(client, parts)), load.seed
    if load.seconds:
        asyncio.get_running_loop().call_later(load.seconds, ending.set)
    while not ending.is_set():
        await generate(client, asked(queries(load.setting, DRAWN, seed), load.rate), ending, watch.heard)
        seed += 1
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
