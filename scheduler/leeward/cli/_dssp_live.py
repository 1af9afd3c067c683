"""The run of `leeward experiment dssp-live`: the testbed as processes, once for each discipline, all at a time."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import httpx
import typer

from leeward.cli._common import sigterm_interrupts
from leeward.cli._dssp_universe import Heard, Universe, generate, open_services, universe
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.core.errors import LeewardError
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.experiments import live
from leeward.policies.dssp.experiments.live import Measured, Search
from leeward.policies.dssp.experiments.live_setup import ENTRY_POINTS, Asked, asked
from leeward.policies.dssp.simulation.run import Simulation
from leeward.policies.dssp.simulation.setup import queries, testbed

NAME = "dssp-live"
#: Ports of one testbed.
PORTS = 8


def run_live(*, quick: bool, seed: int, base_port: int, output: Output, out: Path) -> None:
    """The whole run. Raises LeewardError."""
    sigterm_interrupts()
    began = time.monotonic()
    simulation = Simulation(queries(testbed(), live.QUICK_QUERIES if quick else live.QUERIES, seed))
    model = live.modelled(simulation) if not quick else {}
    searches = {
        name: Search((1 - live.AROUND) * load, (1 + live.AROUND) * load) for name, load in model.items()
    }  # fmt: skip
    measured: list[Measured] = []
    for step in range(1 if quick else live.STEPS):
        rates = {name: live.QUICK_RATE if quick else searches[name].rate for name in DISCIPLINES}
        told = ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items())
        typer.echo(f"step {step + 1}: queries/s {told}", err=True)
        try:
            found = _together(simulation, rates, seed=seed, base_port=base_port, out=out / "processes")
        except httpx.HTTPError as error:
            remedy = f"Read the logs in {out / 'processes'}."
            raise LeewardError(f"an organisation does not answer ({error}).", remedy=remedy) from error
        measured += found
        for one in found if not quick else ():
            searches[one.discipline].learn(one.kept(simulation.queries.setting))
    loads = {name: search.rate for name, search in searches.items()}
    finding = live.conclude(simulation, model, loads, measured)
    command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}"
    tell(NAME, finding, command=command, seed=seed, seconds=time.monotonic() - began, output=output, out=out)


def _together(
    simulation: Simulation, rates: dict[str, float], *, seed: int, base_port: int, out: Path
) -> list[Measured]:
    """Every discipline at its rate, in processes of its own, begun anew."""
    shutil.rmtree(out, ignore_errors=True)
    parts: dict[str, Universe] = {}
    with ExitStack() as stack:
        for number, (name, rate) in enumerate(rates.items()):
            parts[name] = stack.enter_context(
                universe(
                    simulation.queries.setting, discipline=ENTRY_POINTS[name], seed=seed,
                    port=base_port + PORTS * number, tls=False, out=out / name, learn=0,
                )
            )  # fmt: skip
            # one after the other: nodes are measured before queries come, and a busy machine would make them slow
            asyncio.run(_open(parts[name], simulation, rate, simulation.weights(rate, DISCIPLINES[name])))
        return asyncio.run(_measure(simulation, parts, rates))


async def _measure(simulation: Simulation, parts: dict[str, Universe], rates: dict[str, float]) -> list[Measured]:
    setting = simulation.queries.setting
    typer.echo(f"  {len(parts)} testbeds have measured their nodes; queries come", err=True)
    tasks = [asyncio.create_task(_one(parts[name], simulation, name, rates[name])) for name in parts]
    found = await asyncio.gather(*tasks)
    for one in found:
        tails = ", ".join(f"{name} {1000 * tail:.0f} ms" for name, tail in one.tails().items())
        kept = "kept" if one.kept(setting) else "missed"
        typer.echo(f"  {one.discipline} at {one.rate:.2f}: {kept}; {tails}", err=True)
    return found


async def _open(parts: Universe, simulation: Simulation, rate: float, weights: dict[str, float]) -> None:
    async with parts.client("load", parts.provider) as client:
        await open_services(client, simulation.queries.setting, rate, weights)


async def _one(parts: Universe, simulation: Simulation, discipline: str, rate: float) -> Measured:
    setting, every = simulation.queries.setting, asked(simulation.queries, rate)
    number = {id(query): position for position, query in enumerate(every)}
    latencies: dict[str, list[float | None]] = defaultdict(list)
    missed: dict[str, int] = defaultdict(int)
    counting = {one.name: sum(_counts(number, every, query, one.name) for query in every) for one in setting.classes}
    stop = asyncio.Event()

    def heard(one: Heard) -> None:
        name = one.asked.service
        if not live.counted(number[id(one.asked)], len(every)):
            return
        seconds = one.seconds if one.complete else None
        latencies[name].append(seconds)
        missed[name] += seconds is None or seconds > one.asked.objective_s
        if missed[name] > 0.01 * counting[name] + 1:  # its percentile cannot be kept any more
            stop.set()

    async with parts.client("load", parts.provider) as client:
        await generate(client, every, stop, heard)
    started = late = 0
    for name, url in parts.domains.items():
        async with parts.client(name, url) as client:
            counts = (await client.get("/state")).json()["counts"]
            started, late = started + counts["started"], late + counts["late"]
    return Measured(discipline=discipline, rate=rate, latencies=latencies, late=late / max(1, started))


def _counts(number: dict[int, int], every: list[Asked], query: Asked, name: str) -> bool:
    return query.service == name and live.counted(number[id(query)], len(every))
