"""Settings of the scheduler service: one frozen object, read once at the edge.

A file is TOML: the service's settings at its top, each policy's in a table of its name; `-o key=value` and
`-o policy.key=value` override it. A table `[topologies.NAME]` of the same form holds for one topology alone, and goes
before the top. A policy's settings stand in its room (`policies/*/settings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from leeward.core.errors import ConfigError
from leeward.core.options import Text, check, read, refuse_unknown, setting
from leeward.core.orders import Limits

MODES = ("live", "restart")
FORECASTS = ("last", "linear", "yesterday", "blended")
#: Table of a file that holds one table for each topology with settings of its own.
TOPOLOGIES = "topologies"
#: Settings of the service as a whole, which no table of a topology may have.
WHOLE = frozenset({"at_once", "look_s"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See the module. Construction checks; raises ConfigError."""

    # the loop
    policy: str = setting("edrp", "", "name of the policy that decides; none: only plans by hand")
    period_s: float = setting(10.0, "s", "time between plans", least=0.1)
    cool_down_s: float = setting(20.0, "s", "time after a reconfiguration without another one")
    minimum_gain: float = setting(0.02, "", "a plan must make the objective better by this much")
    most_moves: int = setting(0, "replicas", "a plan may move, add and end at most so many; 0: no limit")
    cost_cap: float = setting(0.0, "$/h", "a plan may cost at most so much, unless it costs less than now; 0: no limit")
    scale_down_s: float = setting(300.0, "s", "a plan that only ends replicas waits until the need has lasted so long")
    no_return_s: float = setting(1800.0, "s", "for so long a component that got more replicas keeps them, and one that "
                                 "was moved does not go back, unless the plan answers a load")  # fmt: skip
    pause_price: float = setting(0.0, "$/s", "price of a second in which tuples wait: a plan that only ends replicas "
                                 "has to save more within `horizon_s`; 0: not weighed")  # fmt: skip
    horizon_s: float = setting(600.0, "s", "time over which the saving of such a plan counts", least=1.0)
    at_once: int = setting(2, "topologies", "of all that one service leads, at most so many are reconfigured at the "
                           "same time; 0: no limit")  # fmt: skip
    approval: bool = setting(False, "", "a plan waits for `leeward approve`")
    forecast: str = setting(
        "last", "", "rates that the policy sees: last: as measured; linear: their trend goes on; yesterday: those of "
        "the same hour of yesterday; blended: today's, changed as yesterday's did, and the trend", choices=FORECASTS,
    )  # fmt: skip
    ahead_forecast_s: float = setting(60.0, "s", "rates are forecast for this time from now")
    window_s: float = setting(10.0, "s", "time over which rates are measured", least=1.0)
    minimum_samples: int = setting(50, "tuples", "with fewer in a window the service rate stays as it was", least=1)
    eps_max: int = setting(4, "replicas", "replicas that a worker slot may hold (EPS_max)", least=1)
    warm_apart: bool = setting(
        False, "", "with the first plan, and when workers restart anyway, warm tasks go to slots of their own, from "
        "where they can be brought to any node while the stream goes on",
    )  # fmt: skip
    spares: bool = setting(
        False, "", "while the policy wants no change, warm tasks are brought, one at a time, to nodes with a free slot "
        "that have none; includes `warm_apart`",
    )  # fmt: skip
    replica_cost: float = setting(1.0, "$/h", "cost of a replica (C_i)")
    seed: int = setting(0, "", "seed of the policy's random numbers")
    network: str = setting("", "", "network file, whose sites and links policies see; see operations.md", local=True)
    look_s: float = setting(2.0, "s", "time between two looks at which topologies run", least=0.1)
    # the coordinator
    mode: str = setting("live", "", "live: where no executor moves, tables change without a stop", choices=MODES)
    ahead_bytes: int = setting(4096, "bytes", "state that changes hands is copied ahead if it is more")
    ahead_s: float = setting(600.0, "s", "deadline of copying ahead: then the plan is given up", least=0.1)
    handover_s: float = setting(60.0, "s", "deadline of a handover: then the newest cut is restored", least=0.1)
    prepare_s: float = setting(60.0, "s", "deadline of moving warm tasks before a handover", least=0.1)
    pause_s: float = setting(20.0, "s", "deadline of barrier 1: then the reconfiguration is given up", least=0.1)
    move_s: float = setting(10.0, "s", "time between two calls of rebalance", least=0.1)
    restore_s: float = setting(60.0, "s", "deadline of barrier 2: then it is tried again", least=0.1)
    checkpoint_every_s: float = setting(15.0, "s", "between checkpoints, at most; the first after a third", least=0.1)
    checkpoint_least_s: float = setting(2.0, "s", "between checkpoints, at least, while state is small", least=0.1)
    checkpoint_s: float = setting(10.0, "s", "deadline of a checkpoint", least=0.1)
    session_s: float = setting(6.0, "s", "session with ZooKeeper: a dead leader's lock is free after it", least=1.0)
    restore_from_start: bool = setting(False, "", "with no readable cut, begin again with empty state; else wait")
    silent_s: float = setting(2.0, "s", "a task without a beat for so long is lost: others take over (0: never)")

    def __post_init__(self) -> None:
        check(self)

    @property
    def limits(self) -> Limits:
        """The coordinator's part."""
        return Limits(
            live=self.mode == "live", handover_s=self.handover_s, prepare_s=self.prepare_s,
            ahead_bytes=self.ahead_bytes, ahead_s=self.ahead_s,
            pause_s=self.pause_s, move_s=self.move_s, restore_s=self.restore_s, checkpoint_s=self.checkpoint_s,
            checkpoint_every_s=self.checkpoint_every_s, checkpoint_least_s=self.checkpoint_least_s,
            restore_from_start=self.restore_from_start,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """A file and the command line together: the service's settings, and the raw values of each policy's."""

    service: Settings
    policies: Mapping[str, Mapping[str, object]]  #: policy -> setting -> value; `options.read` checks them
    topologies: Mapping[str, Chosen] = field(default_factory=dict)  #: settings of one topology alone

    def of(self, topology: str) -> Chosen:
        """The settings in force for this topology."""
        return self.topologies.get(topology, self)


def settings_from(
    document: Mapping[str, object], options: Sequence[str] = (), *, more: Callable[[], Iterable[str]] = tuple
) -> Chosen:
    """Settings of a parsed file, overridden by `key=value` texts. Raises ConfigError naming key and value.

    `more`: names of the policies' settings (`edrp.w_r`), to suggest in place of an unknown one.
    """
    tables = document.get(TOPOLOGIES, {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise ConfigError(f"setting '{TOPOLOGIES}' is {tables!r}.", remedy=f"Write tables [{TOPOLOGIES}.NAME].")
    for name, table in tables.items():
        for key in sorted(WHOLE & table.keys()):
            raise ConfigError(
                f"setting '{TOPOLOGIES}.{name}.{key}' is given, and {key} holds for the service as a whole.",
                remedy=f"Write {key} outside of the tables of topologies.",
            )
    common = {key: value for key, value in document.items() if key != TOPOLOGIES}
    chosen = _chosen(common, options, more)
    own = {name: _chosen(_merged(common, table), options, more) for name, table in tables.items()}
    return replace(chosen, topologies=own)


def with_options(chosen: Chosen, options: Sequence[str], *, more: Callable[[], Iterable[str]] = tuple) -> Chosen:
    """The same settings, overridden by `key=value` texts for every topology. Raises ConfigError as `settings_from`."""
    document = {entry.name: getattr(chosen.service, entry.name) for entry in fields(Settings)}
    own = {name: with_options(table, options, more=more) for name, table in chosen.topologies.items()}
    return replace(_chosen({**document, **chosen.policies}, options, more), topologies=own)


def _merged(common: Mapping[str, object], table: Mapping[str, object]) -> dict[str, object]:
    """`table` before `common`, policy by policy."""
    merged = {**common, **table}
    for key, value in table.items():
        below = common.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = {**below, **value}
    return merged


def _chosen(document: Mapping[str, object], options: Sequence[str], more: Callable[[], Iterable[str]]) -> Chosen:
    service = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    policies = {key: dict(value) for key, value in document.items() if isinstance(value, Mapping)}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals:
            raise ConfigError(f"option {option!r} has no '='.", remedy="Write it as -o key=value.")
        policy, dot, name = key.rpartition(".")
        if dot:
            policies.setdefault(policy, {})[name] = Text(text)
        else:
            service[key] = Text(text)
    known = [entry.name for entry in fields(Settings)]
    if service.keys() - set(known):
        refuse_unknown("setting", service, known, more=more())
    return Chosen(service=read(Settings, service), policies=policies)
