"""The run of `leeward experiment agiledart-live-paths`: a process for each site forwards packets between namespaces."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from leeward.adapters.datagrams import DatagramProcess
from leeward.cli._background import forked
from leeward.cli._common import sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.core.errors import LeewardError
from leeward.core.network_document import parse_network
from leeward.local.network.alone import NetworkAlone
from leeward.local.network.plan import End
from leeward.local.network.sockets import enter
from leeward.policies.agiledart.experiments import live_paths as study
from leeward.policies.agiledart.forwarding.forwarder import Forwarder
from leeward.policies.agiledart.forwarding.messages import KINDS

NAME = "agiledart-live-paths"
#: Of every site, in its own namespace.
PORT = 9000
#: Until all sites serve, s.
START_S = 20.0
#: Until the end of each packet is known after the last was sent: twice its lifetime, and some, s.
END_S = 90.0


def run_live(*, quick: bool, seed: int, folder: Path, base_port: int, output: Output, out: Path) -> None:
    """The whole run. Raises LeewardError and OSError."""
    sigterm_interrupts()
    out.mkdir(parents=True, exist_ok=True)
    began, parts = time.monotonic(), []
    for setting, names in study.settings(study.QUICK if quick else study.FULL, seed):
        live: dict[str, list[study.Trace]] = {name: [] for name in names}
        for number, name in enumerate(names * setting.runs):
            typer.echo(f"{setting.name}: {name}", err=True)
            with Sites(setting, name, seed=100 * seed + number, folder=folder, base_port=base_port, out=out) as sites:
                live[name].append(sites.trace())
        played = {
            name: [study.play(setting, name, 1000 * seed + number) for number in range(setting.scale.played)]
            for name in names
        }
        parts.append(study.conclude(setting, live, played))
    command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}"
    seconds = time.monotonic() - began
    tell(NAME, study.finding(parts), command=command, seed=seed, seconds=seconds, output=output, out=out)


class Sites:
    """A process for each site; the first sends the packets."""

    def __init__(
        self, setting: study.Setting, name: str, *, seed: int, folder: Path, base_port: int, out: Path
    ) -> None:
        self._setting, self._name, self._seed, self._out = setting, name, seed, out
        network = parse_network(setting.document(setting.thetas, seed))
        self._between = NetworkAlone(folder, network, base_port=base_port)
        self._stack = ExitStack()

    def __enter__(self) -> Sites:
        with ExitStack() as stack:
            stack.enter_context(self._between.running())
            ends = [self._between.emulation.end(f"n{v}") for v in range(self._setting.network.nodes)]
            forwarders, key = self._setting.forwarders(self._name), secrets.token_bytes(32)
            for file in self._out.glob("site-*"):
                file.unlink()
            for v in reversed(forwarders):
                if v == 0:  # it sends: the others have to be there
                    self._await(lambda: all(self._lines(other) for other in forwarders if other), "all sites")
                site = Site(self._setting, forwarders[v], ends, key, seed=self._seed * 1000 + v, out=self._out)
                stack.enter_context(forked(site.run, self._out / f"site-{v}.log"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _await(self, true: Callable[[], bool], what: str, within_s: float = START_S) -> None:
        until = time.monotonic() + within_s
        while not true():
            if time.monotonic() > until:
                raise LeewardError(f"{what} did not come about.", remedy=f"See the files site-*.log in {self._out}.")
            time.sleep(0.01)

    def _lines(self, site: int, kind: str = "") -> list[dict[str, Any]]:
        """Lines that a site has written, with this field."""
        file = self._out / f"site-{site}.jsonl"
        text = file.read_text() if file.exists() else ""
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in found if not kind or kind in line]

    def trace(self) -> study.Trace:
        """Of the packets; returns when the source knows the end of each."""
        scale = self._setting.scale
        if self._setting.later is not None:
            half = scale.packets // 2
            self._await(lambda: len(self._lines(0, "sent")) >= half, f"packet {half}", START_S + half * scale.gap_s)
            self._between.change(parse_network(self._setting.document(self._setting.later, self._seed)))
        patience_s = END_S + scale.packets * scale.gap_s
        self._await(lambda: len(self._lines(0, "why")) == scale.packets, "the end of each packet", patience_s)
        came = [
            study.Came(number=line["number"], path=tuple(line["path"]), delay_s=line["delay_s"])
            for line in self._lines(self._setting.network.sink, "path")
        ]
        reported = frozenset(line["end"] for line in self._lines(0, "why") if line["why"])
        return study.Trace(came=tuple(sorted(came, key=lambda one: one.number)), reported=reported)


class Site:
    """One process: a forwarder with a socket in its namespace; it writes what happens as lines of JSON."""

    def __init__(
        self, setting: study.Setting, forwarder: Forwarder, ends: list[End], key: bytes, *, seed: int, out: Path
    ) -> None:
        self._setting, self._forwarder, self._end = setting, forwarder, ends[forwarder.me]
        self._shell = DatagramProcess(
            forwarder, KINDS, key, seed=seed, tick_s=study.TICK_S, address=lambda site: (ends[site].address, PORT)
        )
        self._file = out / f"site-{forwarder.me}.jsonl"

    def run(self) -> None:
        """Until it is interrupted."""
        enter(self._end)
        asyncio.run(self._run())

    async def _run(self) -> None:
        running = asyncio.create_task(self._shell.run(asyncio.Event()))
        await asyncio.sleep(0.05)  # its socket is open, or it has failed
        with self._file.open("w", buffering=1) as file:
            file.write(json.dumps({"up": time.monotonic()}) + "\n")
            sent, begin = 0, time.monotonic()
            while not running.done():
                now = time.monotonic()
                due = begin + sent * self._setting.scale.gap_s
                if self._forwarder.me == 0 and sent < self._setting.scale.packets and now >= due:
                    self._shell.act(lambda at, rng: self._forwarder.submit(json.dumps(at).encode(), at, rng)[1])
                    file.write(json.dumps({"sent": sent}) + "\n")
                    sent += 1
                for line in self._news():
                    file.write(json.dumps(line) + "\n")
                await asyncio.sleep(study.TICK_S)
        await running

    def _news(self) -> Iterator[dict[str, object]]:
        """All processes have one clock, that of the machine."""
        while self._forwarder.deliveries:
            one = self._forwarder.deliveries.popleft()
            yield {"number": one.name.number, "path": one.path, "delay_s": one.at_s - json.loads(one.body)}
        while self._forwarder.outcomes:
            end = self._forwarder.outcomes.popleft()
            yield {"end": end.name.number, "why": end.why}
