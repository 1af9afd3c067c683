"""`leeward top`: all topologies of the cluster, a line each, as Redis and ZooKeeper have them; no service is asked.

Exit codes: 0 done, 1 a server does not answer, 2 bad input, 130 Ctrl-C.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import EXIT_INTERRUPTED, refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    NimbusOption,
    RedisOption,
    SetOption,
    ZooKeeperOption,
    addresses_of,
    settings_of,
)
from leeward.cli._signals import signals

if TYPE_CHECKING:
    from rich.table import Table

    from leeward.adapters.nimbus import NimbusClient
    from leeward.adapters.wiring import Addresses
    from leeward.control.report.look import Line, Look
    from leeward.core.settings import Chosen

#: Between two looks at which topologies run, s.
FIND_S = 5.0


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("top")(top)


def top(
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    options: SetOption = None,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Two looks for the rates, print, end.")] = False,
    output: OutputOption = Output.table,
) -> None:
    """Rates, response time, cost, phase and last reconfiguration of every topology; live until Ctrl-C.

    Other outputs than a table are printed once. Example: leeward top --once --output json
    """
    with refusing():
        chosen, addresses = (
            settings_of(config, ["policy=none", *(options or [])]),
            addresses_of(nimbus, zookeeper, redis, cluster),
        )
        with signals() as (stop, interrupted), Topologies(addresses, chosen) as topologies:
            if once or output is not Output.table:
                topologies.lines()
                stop.wait(interval)
                _print(topologies.lines(), output)
            else:
                _live(topologies, interval, stop)
        if interrupted.is_set():
            raise typer.Exit(EXIT_INTERRUPTED)


class Topologies:
    """The topologies that run and are Leeward's, each with its ports open."""

    def __init__(self, addresses: Addresses, chosen: Chosen) -> None:
        self._addresses, self._chosen = addresses, chosen
        self._stack = ExitStack()
        self._looks: dict[str, tuple[str, Look, ExitStack]] = {}  # name -> id, look, its ports
        self._foreign: set[str] = set()
        self._find_at = 0.0
        self._nimbus: NimbusClient | None = None

    def __enter__(self) -> Topologies:
        from leeward.adapters.nimbus import NimbusClient

        self._nimbus = NimbusClient(self._addresses.nimbus)
        self._stack.callback(self._nimbus.close)
        return self

    def __exit__(self, *_raised: object) -> None:
        for opened in self._looks.values():
            opened[2].close()
        self._stack.close()

    def lines(self) -> list[Line]:
        """A line of each, by name. Raises ClusterRefusedError if Nimbus does not answer."""
        if time.monotonic() >= self._find_at:
            self._find_at = time.monotonic() + FIND_S
            self._find()
        return [opened[1].line() for _, opened in sorted(self._looks.items())]

    def _find(self) -> None:
        assert self._nimbus is not None
        running = self._nimbus.topologies()
        for name in [name for name, opened in self._looks.items() if running.get(name) != opened[0]]:
            self._looks.pop(name)[2].close()
        for name, identity in sorted(running.items()):
            if name not in self._looks and identity not in self._foreign:
                self._open(name, identity)

    def _open(self, name: str, identity: str) -> None:
        from leeward.adapters.wiring import open_ports
        from leeward.control.report.look import Look
        from leeward.core.errors import ConfigError

        with ExitStack() as stack:
            try:
                ports = stack.enter_context(open_ports(name, self._addresses, quiet=True))
                look = Look(name, ports, self._chosen.of(name).service)
            except ConfigError:  # not Leeward's, or killed a moment ago
                self._foreign.add(identity)
                return
            self._looks[name] = (identity, look, stack.pop_all())


def _live(topologies: Topologies, interval: float, stop: threading.Event) -> None:
    """In place on a terminal; elsewhere one table below the other. Until `stop`."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        while not stop.wait(interval):
            console.print(table_of(topologies.lines()))
            console.file.flush()
        return
    with Live(table_of(topologies.lines()), console=console, auto_refresh=False) as live:
        while not stop.wait(interval):
            live.update(table_of(topologies.lines()), refresh=True)


def _print(lines: Sequence[Line], output: Output) -> None:
    if output is not Output.table:
        show({"topologies": [asdict(line) for line in lines]}, output)
        return
    from rich.console import Console

    Console(highlight=False, soft_wrap=True).print(table_of(lines))


def table_of(lines: Sequence[Line]) -> Table:
    """As people read it."""
    from rich.markup import escape
    from rich.table import Table

    columns = ("topology", "phase", "epoch", "replicas", "tuples/s", "R, s", "$/h", "backlog", "last", "missing")
    table = Table(box=None, caption=None if lines else "no topology of Leeward's runs")
    for name in columns:  # on a narrow terminal the sentences are folded, and no number is cut
        table.add_column(name, no_wrap=name not in ("last", "missing"), overflow="fold")
    for line in lines:
        cells: tuple[Any, ...] = (
            line.topology, line.phase, line.epoch, _number(line.replicas, 0), _number(line.rate, 1),
            _number(line.response_s, 3), _number(line.cost_per_h, 2), _number(line.backlog, 0), line.last, line.missing,
        )  # fmt: skip
        table.add_row(*(escape(str(cell)) for cell in cells))
    return table


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
