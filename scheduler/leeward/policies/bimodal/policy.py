"""The policy for bi-modal links: the agents map each topology by messages, and the service carries the map out.

Paper -> here: an SLA -> a topology whose facts say it (`facts.py`); t_i -> a component with one replica; a server -> a
node of Storm with an agent beside its supervisor; its map -> the walk that the delivery server's agent tells.

The policy decides nothing alone.  It hands a topology to the agent of its delivery server and asks how far it is; the
map that the agents have reserved is the plan.  When they map a running task anew, as a server was lost, the next answer
is another plan.  A topology that they refuse is tried again after a while; one whose map breaks a limit, as a node
drains, is ended and submitted anew, so its servers are free for its new map.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leeward.core.errors import ConfigError, LeewardError
from leeward.core.model import ClusterView
from leeward.core.peers import Directory, Letter
from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan, Refusal
from leeward.policies.bimodal.facts import TRY, chain_of, task_of, topology_of
from leeward.policies.bimodal.mapping.messages import KINDS, Asked, End, Submit, Told
from leeward.policies.bimodal.model.agents_file import Agents, read_agents, read_secret
from leeward.policies.bimodal.model.values import Task, check_ends, why_impossible
from leeward.policies.bimodal.model.walk import Walk, dedicated_hops, keeps_limits, servers_of
from leeward.policies.bimodal.settings import BiModalSettings


@dataclass(slots=True, kw_only=True)
class _Known:
    """A topology, and how far the agents are with it."""

    task: Task | None  #: under the name of this try
    fault: str = ""  #: why it cannot be given to the agents at all
    draining: frozenset[str] = frozenset()  #: nodes that did when the task was made
    status: str = "unasked"  #: as the delivery server told it last; "": it does not know the task
    walk: Walk | None = None
    asked: float | None = None  #: the `now` of the newest question
    waits: bool = False  #: for the answer to a question
    tries: int = 1
    again_at: float = 0.0


class BiModal:
    """See the module; a `Correspondent`."""

    Settings = BiModalSettings
    #: It plans from the facts of an application, not from measured rates.
    at_once = True

    def __init__(self, settings: BiModalSettings) -> None:
        self._settings = settings
        self._agents: Agents | None = None
        self._known: dict[str, _Known] = {}  # by topology id
        self._letters: list[Letter] = []

    def directory(self) -> Directory:
        """Of the agents that the settings name. Raises ConfigError without their file, FieldError for a wrong one."""
        for name in ("agents", "secret"):
            if not getattr(self._settings, name):
                raise ConfigError(
                    f"bimodal.{name} is not set.", remedy=f"Name a file: -o bimodal.{name}=FILE; see docs/bimodal.md."
                )
        self._agents = read_agents(Path(self._settings.agents))
        key = read_secret(Path(self._settings.secret))
        return Directory(kinds=KINDS, addresses=self._agents.addresses, key=key)

    def letters(self) -> Sequence[Letter]:
        """Those that follow from the newest decision."""
        letters, self._letters = self._letters, []
        return letters

    def receive(self, sender: int, answer: Any) -> None:
        """How far a task is."""
        for known in self._known.values():
            if isinstance(answer, Told) and known.task is not None and known.task.name == answer.task:
                known.status, known.walk, known.waits = answer.status, answer.walk, False

    def decide_all(
        self, views: Sequence[ClusterView], *, now: float, rng: random.Random
    ) -> Mapping[str, Plan | Refusal]:
        """A plan for each topology that the agents have mapped elsewhere than it runs, and why others have none."""
        if self._agents is None:
            self.directory()
        assert self._agents is not None
        self._end_others({view.topology_id for view in views})
        found: dict[str, Plan | Refusal] = {}
        for view in views:
            known = self._known.get(view.topology_id) or self._begin(view, self._agents)
            self._look(view, known, self._agents)
            answer = self._answer(view, known, self._agents)
            self._ask(known, now)
            if answer is not None:
                found[view.topology] = answer
        return found

    def _begin(self, view: ClusterView, agents: Agents) -> _Known:
        known = self._known[view.topology_id] = _Known(task=None)
        self._read(view, known, agents, view.topology_id)
        return known

    def _read(self, view: ClusterView, known: _Known, agents: Agents, name: str) -> None:
        """Make its task of the facts of the view, under this name."""
        known.draining = _draining(view)
        servers = {node: server for server, node in agents.nodes.items()}
        try:
            task = task_of(
                name, view.components, view.streams, servers, draining=known.draining, apart=view.apart
            )  # fmt: skip
            check_ends(task, agents.network)
            known.task, known.fault = task, why_impossible(task, agents.network)
        except LeewardError as error:
            known.fault = str(error)

    def _look(self, view: ClusterView, known: _Known, agents: Agents) -> None:
        """Other nodes may drain than before; a map that breaks a limit is ended, and the next try begins."""
        if known.draining != _draining(view):
            self._read(view, known, agents, known.task.name if known.task else view.topology_id)
        task, walk = known.task, known.walk
        if known.fault or task is None or known.status != "running" or walk is None or keeps_limits(walk, task):
            return
        self._letters.append(Letter(task.delivery, End(task=task.name), answered=False))
        self._next_try(known)

    def _end_others(self, shown: set[str]) -> None:
        """Topologies that are no longer shown are over."""
        for id in sorted(self._known.keys() - shown):
            known = self._known.pop(id)
            if known.task is not None and (not known.fault or known.status != "unasked"):
                self._letters.append(Letter(known.task.delivery, End(task=known.task.name), answered=False))

    def _ask(self, known: _Known, now: float) -> None:
        """Once in each decision how far a task is, and again while it is being mapped; submit one that is not known."""
        if known.task is None or known.fault:
            return
        if known.status == "refused":
            self._try_again(known, now)
        elif known.status == "over":  # an earlier process of the service has ended this try
            self._next_try(known)
        if known.status == "" and not known.waits:
            self._letters.append(Letter(known.task.delivery, Submit(spec=known.task), answered=False))
        if known.asked != now or (not known.waits and known.status in ("", "mapping", "reserving")):
            known.asked, known.waits = now, True
            self._letters.append(Letter(known.task.delivery, Asked(task=known.task.name), answered=True))

    def _try_again(self, known: _Known, now: float) -> None:
        """Under another name, as the agents remember what they have refused."""
        if not known.again_at:
            known.again_at = now + self._settings.retry_s
        elif now >= known.again_at:
            self._next_try(known)

    def _next_try(self, known: _Known) -> None:
        assert known.task is not None
        known.tries, known.again_at, known.status, known.waits = known.tries + 1, 0.0, "", False
        known.asked, known.walk = None, None
        known.task = replace(known.task, name=f"{topology_of(known.task.name)}{TRY}{known.tries}")

    def _answer(self, view: ClusterView, known: _Known, agents: Agents) -> Plan | Refusal | None:
        if known.fault:
            return Refusal(reason=known.fault)
        if known.status != "running" or known.walk is None:
            return Refusal(reason=self._why(known))
        wanted = _wanted(view, known.walk, agents)
        if not view.first and wanted == present_deployment(view):
            return None
        hops = f"{dedicated_hops(known.walk)} hops over dedicated links, {known.walk.public} over the public network"
        try:
            return carry(view, wanted, reason=f"mapped by the agents: {hops}")
        except LeewardError as error:
            return Refusal(reason=str(error))

    def _why(self, known: _Known) -> str:
        assert known.task is not None
        if known.status == "refused":
            return f"the agents have found no map with room for it ({known.tries} tries)"
        if known.status == "unasked" or known.waits:
            return f"the agent of server {known.task.delivery} has not answered"
        return f"the agents are at it: {known.status or 'submitted'}"


def _draining(view: ClusterView) -> frozenset[str]:
    return frozenset(node.id for node in view.nodes if node.draining)


def _wanted(view: ClusterView, walk: Walk, agents: Agents) -> dict[str, dict[str, int]]:
    """Component -> node -> replicas, by a whole map."""
    chain = chain_of(view.components, view.streams)
    servers = (walk.visits[0].at, *servers_of(walk), walk.at)
    return {one.id: {agents.nodes.get(v, f"server {v}"): 1} for one, v in zip(chain, servers, strict=True)}
