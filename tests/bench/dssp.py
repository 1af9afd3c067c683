"""DSSP's services: deadlines from measured latencies, discovery of domains, dispatch of tasks.

    python tests/bench/dssp.py [--only discovery] [--domains 100000] [--matches 1000] [--times 1000]

Part `deadlines`: x_u of so many nodes with full windows.  Part `dispatch`: a provider sends each query to so many
domains, whose connections another process reads; its delay is from the time at which a query is due until a domain has
its task, of 50 of the domains; a round of bare sockets stands beside it.  Part `simulation`: the largest setting of
`leeward experiment dssp-scale`, once.

Part `discovery`: so many domains, each with two areas that overlap (so that each match is found twice and told once)
and under a lease, are asked for those of an area that has exactly so many.  In memory: of the registry's object, with
a warm tree, with as many new domains beside the tree as may be, and what a new domain, a renewed lease and the building
of a tree cost.  HTTP: of a uvicorn in a process of its own on loopback, by a client that keeps its connection and
decodes the answer.  Prints a table and writes `out/bench/dssp.json`.  Exit code 1 if an answer is wrong; speed is
reported only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import httpx
import msgspec
import uvicorn
from dssp_dispatch import deadlines, dispatch, simulation
from dssp_rows import Row, timed
from machine import facts, stolen_s
from rich.console import Console
from rich.table import Table

from leeward.cli._dssp_registry import registry_app
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.registry import index
from leeward.policies.dssp.registry.entries import DomainEntry
from leeward.policies.dssp.registry.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
#: The area that is asked for, degrees; matching domains are within it, the others at the same latitudes or any.
ASKED = Area(0.0, 0.0, 30.0, 30.0)
CAPABILITY, OTHERS = "camera", ("radar", "sound", "heat")
LEASE_S = 3600.0
TOKEN = "token of the benchmark"
STARTING_S = 60.0


class Found(msgspec.Struct):
    """A domain as a client decodes it."""

    name: str
    url: str
    capabilities: list[str]
    areas: list[tuple[float, float, float, float]]


class Answer(msgspec.Struct):
    """The answer to a discovery."""

    domains: list[Found]


def main() -> None:
    options = _options()
    stolen, rows = stolen_s(), []
    for part in options.only:
        rows += PARTS[part](options)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 118)
    console.print(_table(rows))
    about = facts() | {"stolen_s": round(stolen_s() - stolen, 2)}
    console.print(", ".join(f"{name} {value}" for name, value in about.items()), style="dim")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": about, "domains": options.domains, "matches": options.matches}
    options.out.write_text(json.dumps(result | {"rows": [asdict(row) for row in rows]}, indent=1) + "\n")


def discovery(options: argparse.Namespace) -> Iterator[Row]:
    """The part `discovery`."""
    registry = filled(options.domains, options.matches)
    setting = f"{options.matches:,} of {options.domains:,}"
    yield from _in_memory(registry, options, setting)
    with serving(options.domains, options.matches) as url, httpx.Client(base_url=url, timeout=STARTING_S) as client:
        decoder = msgspec.json.Decoder(Answer)
        query = {"capability": CAPABILITY, "area": ",".join(map(str, ASKED.to_json()))}
        headers = {"Authorization": f"Bearer {TOKEN}"}

        def ask() -> None:
            response = client.get("/domains", params=query, headers=headers)
            _check(len(decoder.decode(response.content).domains), options.matches)

        yield timed("discovery", f"HTTP, {setting}", ask, max(1, options.times // 4), bound_s=5e-3)


def _in_memory(registry: Registry, options: argparse.Namespace, setting: str) -> Iterator[Row]:
    def ask() -> None:
        _check(len(registry.discover(CAPABILITY, ASKED, now=1.0)), options.matches)

    times = options.times
    yield timed("discovery", f"in memory, with the first tree, {setting}", ask, 1, warm=0)
    yield timed("discovery", f"in memory, {setting}", ask, times, bound_s=200e-6)
    again = registry.discover(CAPABILITY, ASKED, now=1.0)[0]
    yield timed("discovery", "renewing a lease", lambda: registry.register(again, "owner", now=1.0), times)
    room = index.LEAST + 2 * options.domains // index.SHARE
    new = iter(list(domains(random.Random(2), room // 2 + 1, 0, prefix="new")))

    def register() -> None:
        registry.register(next(new), "owner", now=1.0)

    yield timed("discovery", "registering a new domain", register, room // 2, warm=0)
    yield timed("discovery", f"in memory, {room:,} boxes beside the tree", ask, times, bound_s=200e-6)
    register()
    yield timed("discovery", "in memory, with the next tree", ask, 1, warm=0)


def filled(total: int, matches: int) -> Registry:
    """A registry with so many domains, of which so many match `CAPABILITY` and `ASKED`."""
    registry = Registry(LEASE_S)
    for entry in domains(random.Random(1), total, matches):
        registry.register(entry, "owner", now=0.0)
    return registry


def domains(rng: random.Random, total: int, matches: int, prefix: str = "domain") -> Iterator[DomainEntry]:
    """Domains in random order, all with `CAPABILITY`; the first part of them within `ASKED`, the others outside."""
    names = [f"{prefix}-{number:06d}" for number in range(total)]
    rng.shuffle(names)
    for position, name in enumerate(names):
        inside = position < matches
        west = rng.uniform(ASKED.west, ASKED.east - 1) if inside else rng.uniform(ASKED.east + 1, 178)
        south = rng.uniform(ASKED.south, ASKED.north - 1) if inside else rng.uniform(-89, 88)
        areas = (Area(west, south, west + 0.5, south + 0.5), Area(west + 0.25, south, west + 0.75, south + 0.5))
        capabilities = (CAPABILITY, rng.choice(OTHERS))
        yield DomainEntry(name=name, url=f"https://{name}.example:8443", capabilities=capabilities, areas=areas)


@contextmanager
def serving(total: int, matches: int) -> Iterator[str]:
    """The address of a registry with so many domains, in a process of its own."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = multiprocessing.get_context("fork").Process(target=_serve, args=(listening, total, matches))
        server.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.terminate()
            server.join()


def _serve(listening: socket.socket, total: int, matches: int) -> None:
    registry = filled(total, matches)
    start = time.monotonic()
    app = registry_app(registry, {"owner": TOKEN}, lambda: time.monotonic() - start)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise SystemExit(f"{found} domains were found, not {wanted}")


def _table(rows: list[Row]) -> Table:
    table = Table("part", "what", "times", "best", "median", "99 %", "bound")
    for row in rows:
        times = [row.best_s, row.median_s, row.p99_s, row.bound_s]
        table.add_row(row.part, row.what, str(row.times), *("" if s is None else f"{s * 1e3:.3f} ms" for s in times))
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS), help="parts, with commas")
    parser.add_argument("--domains", type=int, default=100_000)
    parser.add_argument("--matches", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=1_000, help="calls of each measurement")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/dssp.json")
    options = parser.parse_args()
    if unknown := set(options.only) - PARTS.keys():
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    if not 1 <= options.matches <= options.domains or options.times < 1:
        parser.error("at least one match, no more of them than domains, and one call are needed")
    return options


#: Name on the command line -> what yields its rows.
PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "deadlines": deadlines, "discovery": discovery, "dispatch": dispatch, "simulation": simulation,
}  # fmt: skip

if __name__ == "__main__":
    main()
