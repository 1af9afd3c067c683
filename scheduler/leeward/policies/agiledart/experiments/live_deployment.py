"""Fig. 8(b) by agents as processes: time from announcing concurrent applications until all of them are placed.

The virtual time of `deployment.py` has the paper's scale; here the messages, their frames and the sockets are real, and
all agents share one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Any

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.agiledart.deployment.messages import Announce, Wanted
from leeward.policies.agiledart.overlay.ids import id_of, to_bytes

FIGURE = "Fig. 8(b)"
ZONE, OPERATORS, CAPACITY, HEARTBEAT_S = "area", 10, 40, 2.0
#: Bound of ours, as for the model: until all are placed, most over one.
FLAT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Agents, and how often so many applications are announced at once."""

    agents: int
    runs: Mapping[int, int]


FULL = Scale(agents=60, runs={1: 20, 10: 5, 100: 3})
QUICK = Scale(agents=12, runs={1: 3, 10: 1})


def name_of(agent: int) -> str:
    """Of an agent."""
    return f"node-{agent}"


def batch(scale: Scale, concurrent: int, run: int, rng: Random) -> list[tuple[Announce, int]]:
    """Applications, each with its owner: chains between a sensor's and an actuator's node, drawn by chance."""
    found = []
    for number in range(concurrent):
        source, sink = (to_bytes(id_of(name_of(agent))) for agent in rng.sample(range(scale.agents), 2))
        pins = {0: (source,), OPERATORS - 1: (sink,)}
        operators = tuple(
            Wanted(name=f"op-{at}", upstream=(at - 1,) if at else (), nodes=pins.get(at, ())) for at in range(OPERATORS)
        )
        announce = Announce(application=f"app-{concurrent}-{run}-{number}", zone=ZONE, operators=operators)
        found.append((announce, rng.randrange(scale.agents)))
    return found


def conclude(scale: Scale, documents: Mapping[int, Sequence[Mapping[str, Any]]], over: int) -> Finding:
    """`documents`: applications at once -> a run's result each, as `leeward overlay place` has it; `over`: agents that
    held more than they can."""
    rows, last, mean = [], {}, {}
    for concurrent, runs in documents.items():
        apps = [one for run in runs for one in run["applications"]]
        last[concurrent] = fmean(run["seconds"] for run in runs)
        mean[concurrent] = fmean(one["seconds"] for one in apps)
        placed = 100 * sum(one["status"] == "placed" for one in apps) / len(apps)
        where = f"{scale.agents} processes, {concurrent} at once, mean of {len(runs)}"
        rows += [
            _row(where, "until all are placed", "ms", 1_000 * last[concurrent]),
            _row(where, "an application", "ms", 1_000 * mean[concurrent]),
            _row(where, "applications that are placed", "%", placed, low=100.0),
        ]
    one, *_, most = sorted(documents)
    where = f"{scale.agents} processes"
    full = scale is FULL
    rows += [
        _row(
            where, f"until all are placed, {most} over {one}", "1", last[most] / last[one], high=FLAT if full else None
        ),
        _row(where, f"mean of an application, {most} over {one}", "1", mean[most] / mean[one]),
        _row(where, "agents that held more than they can", "1", over, high=0),
    ]
    at = tuple(float(number) for number in sorted(documents))
    curves = tuple(
        Curve(name=name, values=tuple(1_000 * found[int(number)] for number in at))
        for name, found in (("until all are placed", last), ("an application", mean))
    )
    panel = Panel(
        title="from announcement to placement", unit="ms", kind="lines", along="applications", at=at, curves=curves
    )
    return Finding(rows=tuple(rows), panels=(panel,), notes=NOTES)


def _row(
    setting: str, metric: str, unit: str, ours: float, *, low: float | None = None, high: float | None = None
) -> Row:
    return Row(figure=FIGURE, setting=setting, metric=metric, unit=unit, ours=ours, low=low, high=high)


NOTES = (
    f"Agents of one zone, each a process of its own, on one machine; heartbeats every {HEARTBEAT_S:g} s; chains of "
    f"{OPERATORS} operators whose ends are pinned to nodes drawn by chance; each agent holds {CAPACITY} operators. "
    "Applications are announced by one client to owners drawn by chance, all at once, on an overlay without others.",
    "The machine's processors are shared by all agents, so the time of many applications at once grows with their "
    "messages; on machines of their own agents would work beside each other. No worker is started.",
)
