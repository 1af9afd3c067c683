"""Fig. 8(b) by agents as processes and by a real Nimbus: time until concurrent applications are placed.

The virtual time of `deployment.py` has the paper's scale; here the messages, their frames and the sockets are real, and
all agents share one machine: over loopback, where a message takes no time, and over emulated networks, where each pair
of agents has a delay. Nimbus has the machine to itself, before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import fmean
from typing import Any

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.agiledart.deployment.messages import Announce, Wanted
from leeward.policies.agiledart.overlay.ids import id_of, to_bytes

FIGURE = "Fig. 8(b)"
ZONE, OPERATORS, CAPACITY = "area", 10, 40
#: Bound of ours, as for the model: until all are placed, most over one.
FLAT = 2.0
#: Applications at once -> a document of each run.
Documents = Mapping[int, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The way between two agents. Each pair has a delay of its own, drawn evenly; without any it is loopback."""

    name: str
    heartbeat_s: float  #: of the agents; an acknowledgement is missed after a tenth of it
    least_ms: float = 0.0  #: one way
    most_ms: float = 0.0

    @property
    def emulated(self) -> bool:
        """Each agent has a namespace, and a relay carries the packets."""
        return self.most_ms > 0.0

    def document(self, agents: int, seed: int) -> dict[str, Any]:
        """A network document: each agent is the node of its name, at a site of its own."""
        rng, names = Random(f"{seed} {self.name}"), [name_of(agent) for agent in range(agents)]
        links = []
        for a, b in combinations(names, 2):
            delay = {"delay_ms": round(rng.uniform(self.least_ms, self.most_ms), 1)}
            links += [{"from": a, "to": b} | delay, {"from": b, "to": a} | delay]
        nodes = [{"id": name, "site": name} for name in names]
        nodes[0]["role"] = "nimbus"  # each network has one
        return {"seed": seed, "site": [{"id": name} for name in names], "node": nodes, "link": links}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Agents, and how often so many applications are announced at once; `nimbus`: how often to Nimbus."""

    agents: int
    between: tuple[Between, ...]
    runs: Mapping[int, int]
    nimbus: Mapping[int, int]


LOOPBACK = Between(name="loopback", heartbeat_s=2.0)
#: The delays of `agiledart-latency`, and round trips of 50 to 250 ms, the delays of links in `agiledart-paths`.
NEAR = Between(name="2 to 10 ms", heartbeat_s=2.0, least_ms=2.0, most_ms=10.0)
FAR = Between(name="25 to 125 ms", heartbeat_s=5.0, least_ms=25.0, most_ms=125.0)
FULL = Scale(
    agents=60, between=(LOOPBACK, NEAR, FAR), runs={1: 20, 10: 5, 100: 3}, nimbus={1: 10, 10: 4, 100: 2}
)  # fmt: skip
QUICK = Scale(agents=12, between=(LOOPBACK, NEAR), runs={1: 3, 10: 1}, nimbus={1: 2, 10: 1})
#: Bound of the issue: Nimbus' time grows with each further topology, and the agents' does not, or less.
GROWS = 1.0


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


def conclude(scale: Scale, agents: Mapping[str, Documents], over: int, nimbus: Documents | None = None) -> Finding:
    """`agents`: a name of `scale.between` -> applications at once -> a run's result each, as `leeward overlay place`
    has it; `over`: agents that held more than they can. `nimbus`: the same of Nimbus, as `leeward.local.unmanned` has
    it; None: it did not run."""
    rows, curves = [], []
    for name, documents in agents.items():
        rows += _agents(scale, name, documents)
        curves.append((f"agents, {name}", _times(documents)[0]))
    rows.append(_row(f"{scale.agents} processes", "agents that held more than they can", "1", over, high=0))
    if nimbus:
        rows += _nimbus(scale, nimbus)
        for name, documents in agents.items():
            rows += _beside(scale, name, _times(documents)[0], _times(nimbus)[0])
        curves.append(("Nimbus", _times(nimbus)[0]))
    at = tuple(sorted(scale.runs))
    panel = Panel(
        title="until all are placed", unit="ms", kind="lines", along="applications at once",
        at=tuple(map(float, at)), logarithmic=True,
        curves=tuple(Curve(name=name, values=tuple(1_000 * found[number] for number in at)) for name, found in curves),
    )  # fmt: skip
    return Finding(rows=tuple(rows), panels=(panel,), notes=(*NOTES, *(OF_NIMBUS if nimbus else ())))


def _times(documents: Documents) -> tuple[dict[int, float], dict[int, float]]:
    """Applications at once -> until all are placed, and of an application, s; means of the runs."""
    last = {number: fmean(run["seconds"] for run in runs) for number, runs in documents.items()}
    return last, {number: _mean(runs, "seconds") for number, runs in documents.items()}


def _mean(runs: Sequence[Mapping[str, Any]], figure: str) -> float:
    return fmean(one[figure] for run in runs for one in run["applications"])


def _agents(scale: Scale, name: str, documents: Documents) -> list[Row]:
    rows, (last, mean) = [], _times(documents)
    for concurrent, runs in documents.items():
        statuses = [one["status"] for run in runs for one in run["applications"]]
        placed = 100 * statuses.count("placed") / len(statuses)
        where = f"{scale.agents} processes, {name}, {concurrent} at once, mean of {len(runs)}"
        rows += [
            _row(where, "until all are placed", "ms", 1_000 * last[concurrent]),
            _row(where, "an application", "ms", 1_000 * mean[concurrent]),
            _row(where, "applications that are placed", "%", placed, low=100.0),
        ]
    one, *_, most = sorted(documents)
    where, flat = f"{scale.agents} processes, {name}", FLAT if scale is FULL else None
    return [
        *rows,
        _row(where, f"until all are placed, {most} over {one}", "1", last[most] / last[one], high=flat),
        _row(where, f"mean of an application, {most} over {one}", "1", mean[most] / mean[one]),
    ]


def _nimbus(scale: Scale, documents: Documents) -> list[Row]:
    rows, (last, mean) = [], _times(documents)
    for concurrent, runs in documents.items():
        where = f"Nimbus of {scale.agents} nodes, {concurrent} at once, mean of {len(runs)}"
        rows += [
            _row(where, "until all are assigned", "ms", 1_000 * last[concurrent]),
            _row(where, "a topology", "ms", 1_000 * mean[concurrent]),
            _row(where, "a topology, from its acceptance on", "ms", 1_000 * _mean(runs, "accepted_s")),
        ]
    one, *_, most = sorted(documents)
    where = f"Nimbus of {scale.agents} nodes"
    return [*rows, _row(where, f"until all are assigned, {most} over {one}", "1", last[most] / last[one])]


def _beside(scale: Scale, name: str, agents: Mapping[int, float], nimbus: Mapping[int, float]) -> list[Row]:
    """Until all are placed: Nimbus' time over the agents', and what each further application adds to both."""
    where, (one, *_, most) = f"Nimbus beside agents, {name}, until all are placed", sorted(agents)
    added = {name: (found[most] - found[one]) / (most - one) for name, found in (("A", agents), ("N", nimbus))}
    return [
        *(
            _row(where, f"Nimbus over agents, {number} at once", "1", nimbus[number] / agents[number])
            for number in sorted(agents)
        ),
        _row(where, f"agents: each one more, {one} to {most}", "ms", 1_000 * added["A"]),
        _row(where, f"Nimbus: each one more, {one} to {most}", "ms", 1_000 * added["N"]),
        _row(
            where, "each one more, Nimbus over agents", "1", added["N"] / added["A"],
            low=GROWS if scale is FULL else None,
        ),
    ]  # fmt: skip


def _row(
    setting: str, metric: str, unit: str, ours: float, *, low: float | None = None, high: float | None = None
) -> Row:
    return Row(figure=FIGURE, setting=setting, metric=metric, unit=unit, ours=ours, low=low, high=high)


NOTES = (
    "Agents of one zone, each a process of its own, on one machine; chains of "
    f"{OPERATORS} operators whose ends are pinned to nodes drawn by chance; each agent holds {CAPACITY} operators. "
    "Applications are announced by one client to owners drawn by chance, all at once, on an overlay without others. "
    "No worker is started.",
    "Loopback: messages take no time, so all of it is the time of the machine's processors, which all agents share; on "
    "machines of their own they would work beside each other. Heartbeats every 2 s.",
    "2 to 10 ms, 25 to 125 ms: each agent in a network namespace of its own, each pair of them with a delay drawn "
    "evenly from that range, one way; the client is beside each owner, without delay. The first is the range of "
    "`agiledart-latency`, the second gives round trips of 50 to 250 ms, as links have in `agiledart-paths`. The relay "
    "that carries the packets has its share of the processors, too. Heartbeats every 2 and 5 s.",
)
OF_NIMBUS = (
    "Nimbus: Storm's own, with its default scheduler and without Leeward's plugin, on the machine that the agents had, "
    "without them. It counts as many nodes as there are agents, each with as many slots as an agent holds operators; "
    "the nodes are registered in ZooKeeper as supervisors are, and no supervisor is behind them. The same chains, one "
    "worker each, which is Storm's default and the least to assign. It has assigned 20 before it is measured.",
    "Nimbus' time begins when all clients call it at once, each over a connection of its own and with a jar that it "
    "has already, and ends when ZooKeeper has the assignment. It contains the copies of jar, code and configuration "
    "that Nimbus makes of each topology, one after another, and the wait for the next scheduling pass: one each second "
    "(storm_conf/storm.yaml; Storm's default is ten), begun at a moment drawn by chance. The agents' time begins when "
    "one client sends all announcements, and ends when it has the owner's answer; agents copy no code. Neither has "
    "in it how hosts learn of it, or a worker's start.",
    "The last over the first is no measure of growth for Nimbus, whose one topology waits for a pass as well; so the "
    "two are compared by what each further application adds until all are placed. Nimbus has no delay, beside each of "
    "the agents' networks.",
)
