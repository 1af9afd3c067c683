"""`leeward history`: the reconfigurations of a topology that are over, as the service has stored them.

Exit codes: 0 done, 1 a server does not answer, 2 bad input.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import ClusterOption, NimbusOption, RedisOption, Topology, ZooKeeperOption, addresses_of

if TYPE_CHECKING:
    from leeward.control.report.values import Reconfiguration


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("history")(history)


def history(
    topology: Topology,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Only the newest N.")] = 64,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Reconfigurations that are over, oldest first: when, by which way, what changed, and the time of each phase.

    They outlive the service, not the topology. Example: leeward history query1 --last 5
    """
    with refusing():
        from leeward.adapters.wiring import open_ports
        from leeward.control.report.history import read_entries

        with open_ports(topology, addresses_of(nimbus, zookeeper, redis, cluster), quiet=True) as ports:
            store = ports.open_topology(ports.nimbus.structure(topology)).history
            entries = read_entries(list(store.read()))[-last:]
        show(document(topology, entries, whole=output is not Output.table), output)


def document(topology: str, entries: tuple[Reconfiguration, ...], *, whole: bool) -> dict[str, Any]:
    """The result; not `whole`: a line of each entry for people."""
    from dataclasses import asdict

    if whole:
        return {"topology": topology, "reconfigurations": [_plain(asdict(entry)) for entry in entries]}
    return {
        "topology": topology,
        "reconfigurations": [
            {
                "ended": _clock(entry.ended), "kind": entry.kind, "epoch": entry.epoch, "result": entry.result,
                "pause s": f"{entry.pause_s:.3f}",
                "phases": " ".join(f"{name} {seconds:.2f}" for name, seconds in entry.phases.items()),
                "changes": ", ".join(
                    f"{c.kind} {c.component} {_places(c.before)} -> {_places(c.after)}" for c in entry.changes
                ),
                "reason": entry.reason + _unsure(entry),
            }
            for entry in entries
        ] or "none yet",
    }  # fmt: skip


def _unsure(entry: Reconfiguration) -> str:
    if not entry.clock_behind_s:
        return ""
    behind = f"{entry.clock_behind_s:.1f} s behind the clock of the leader before it"
    return f"; its last leader's clock was {behind}, so durations are not sure"


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "marks"}  # only of one in progress


def _places(places: Any) -> str:
    return "+".join(node if count == 1 else f"{node}x{count}" for node, count in sorted(places.items())) or "nowhere"


def _clock(at: float | None) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at is not None else "-"
