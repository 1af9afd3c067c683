"""Which faults, on what and when: a seeded schedule. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What is done to a process."""

    KILL = "kill"  #: SIGKILL; the target's own supervision starts it again
    STOP = "stop"  #: SIGSTOP, and SIGCONT after `seconds`
    RESTART = "restart"  #: an orderly end, and a start after `seconds`


class Target(StrEnum):
    """What a fault is done to."""

    TASK = "task"  #: a Python process
    WORKER = "worker"  #: a worker's JVM
    SUPERVISOR = "supervisor"
    NIMBUS = "nimbus"
    SERVICE = "service"  #: the `leeward serve` that leads
    ZOOKEEPER = "zookeeper"
    REDIS = "redis"


#: Every kind of fault once.
KINDS = (
    (Action.KILL, Target.TASK),
    (Action.STOP, Target.TASK),
    (Action.KILL, Target.WORKER),
    (Action.STOP, Target.WORKER),
    (Action.KILL, Target.SUPERVISOR),
    (Action.STOP, Target.SUPERVISOR),
    (Action.KILL, Target.NIMBUS),
    (Action.STOP, Target.NIMBUS),
    (Action.KILL, Target.SERVICE),
    (Action.STOP, Target.SERVICE),
    (Action.RESTART, Target.ZOOKEEPER),
    (Action.RESTART, Target.REDIS),
    (Action.STOP, Target.REDIS),
)
#: Tasks are what there is most of: these are dealt once more each time that all kinds were.
MORE = ((Action.KILL, Target.TASK), (Action.STOP, Target.TASK))
#: Components whose replicas a handover changes, and the others.
ELASTIC = ("count", "join", "passing", "sink")
COMPONENTS = ("left", "count", "join", "right", "sink", "passing")
PAUSES_S = (1.0, 3.0, 8.0)
REDIS_PAUSE_S = 3.0
#: A service manager starts a daemon again this long after its end; the manager of `leeward serve` takes 5 s.
DAEMON_AWAY_S = 2.0
#: A handover takes 0.04 to 0.2 s from its request on, 0.06 s as a rule.
AFTER_MS = (0, 80)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    number: int  #: from 1
    action: Action
    target: Target
    component: str  #: of a task; else the one that an aimed fault reconfigures
    pick: float  #: in [0, 1): which one of several candidates
    seconds: float  #: how long it is stopped, or away
    after_ms: int | None  #: so long after a reconfiguration was asked for; None: at a moment of its own

    @property
    def kind(self) -> str:
        """As the report groups it."""
        return f"{self.action} {self.target}"

    @property
    def text(self) -> str:
        """For people."""
        what = f"{self.kind} of {self.component}" if self.target is Target.TASK else self.kind
        how_long = f" for {self.seconds:g} s" if self.action is Action.STOP else ""
        when = "" if self.after_ms is None else f", {self.after_ms} ms into a reconfiguration of {self.component}"
        return what + how_long + when


def schedule(seed: int, count: int, only: Collection[str] = ()) -> tuple[Fault, ...]:
    """`count` faults, half of them aimed at the middle of handovers; no kind comes twice before all came once.

    `only`: of these kinds, as `Fault.kind` names them. Raises ValueError for one that there is not.
    """
    names = {f"{action} {target}": (action, target) for action, target in KINDS}
    for name in only:
        if name not in names:
            raise ValueError(f"kind of fault {name!r} is unknown; choose from {', '.join(names)}")
    rng = random.Random(seed)
    aimed = set(rng.sample(range(count), count // 2))
    cards = tuple(names[name] for name in names if name in only)
    kinds, components = _dealt(rng, cards or KINDS, () if cards else MORE), _dealt(rng, COMPONENTS)
    elastic = _dealt(rng, ELASTIC)
    faults = []
    for index in range(count):
        action, target = next(kinds)
        component = next(components) if index not in aimed and target is Target.TASK else next(elastic)
        faults.append(
            Fault(
                number=index + 1, action=action, target=target, component=component, pick=rng.random(),
                seconds=_seconds(rng, action, target),
                after_ms=rng.randint(*AFTER_MS) if index in aimed else None,
            )
        )  # fmt: skip
    return tuple(faults)


def _dealt(rng: random.Random, cards: tuple, more: tuple = ()) -> Iterator:
    """All cards in a random order, then `more` of them, and again."""
    while True:
        for deck in (list(cards), list(more)):
            rng.shuffle(deck)
            yield from deck


def _seconds(rng: random.Random, action: Action, target: Target) -> float:
    if action is Action.STOP:
        pause = rng.choice(PAUSES_S)
        return REDIS_PAUSE_S if target is Target.REDIS else pause
    return DAEMON_AWAY_S
