"""Settings of the scheduler service: one frozen object, read once at the edge.

Each setting once, with its type, default, unit and a sentence; `describe` prints them. A file is flat TOML
(`key = value`), `-o key=value` overrides it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from leeward.core.errors import ConfigError
from leeward.core.orders import Limits

POLICIES = ("edrp", "even", "none")
METHODS = ("restricted", "auto", "exact", "compact", "ilp")
MODES = ("live", "restart")
DOWNTIME_MODELS = ("auto", "live", "storm", "generic")


def _setting(default: Any, unit: str, about: str, *, least: float = 0.0, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"unit": unit, "about": about, "least": least, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See the module. Construction checks; raises ConfigError."""

    # the loop
    policy: str = _setting("edrp", "", "who decides; none: only manual plans", choices=POLICIES)
    period_s: float = _setting(10.0, "s", "time between plans", least=0.1)
    cool_down_s: float = _setting(20.0, "s", "time after a reconfiguration without another one")
    minimum_gain: float = _setting(0.02, "", "a plan must make the objective better by this much")
    rebalance_over: float = _setting(0.25, "", "groups change owners if a replica's load is this share over the mean")
    window_s: float = _setting(10.0, "s", "time over which rates are measured", least=1.0)
    minimum_samples: int = _setting(50, "tuples", "with fewer in a window the service rate stays as it was", least=1)
    headroom: float = _setting(0.1, "", "plan for this share more than the measured rates")
    drain_s: float = _setting(30.0, "s", "plan to work off a backlog in this time", least=1.0)
    eps_max: int = _setting(4, "replicas", "replicas that a worker slot may hold (EPS_max)", least=1)
    warm_apart: bool = _setting(
        False, "", "with the first plan, and when workers restart anyway, warm tasks go to slots of their own, from "
        "where they can be brought to any node while the stream goes on",
    )  # fmt: skip
    # S-EDRP
    w_r: float = _setting(0.45, "", "weight of response time")
    w_c: float = _setting(0.45, "", "weight of cost")
    w_d: float = _setting(0.1, "", "weight of downtime")
    r_max_s: float = _setting(0.150, "s", "bound of the response time", least=1e-6)
    c_max: float = _setting(15.0, "$/h", "bound of the cost", least=1e-6)
    t_d_max_s: float = _setting(60.0, "s", "bound of the downtime of one reconfiguration", least=1e-6)
    t_syn_s: float = _setting(6.0, "s", "time to synchronise a reconfiguration")
    t_spawn_s: float = _setting(0.5, "s", "time to start a replica")
    downtime_model: str = _setting(
        "auto", "", "live: as handovers are measured, A.2 where an executor moves; storm: A.2; generic: A.1; "
        "auto: live if mode is, else storm", choices=DOWNTIME_MODELS,
    )  # fmt: skip
    replica_cost: float = _setting(1.0, "$/h", "cost of a replica (C_i)")
    link_cost: float = _setting(0.0, "$/h per tuple/s", "cost of traffic between two nodes (C_uv)")
    link_delay_s: float = _setting(0.0, "s", "one-way delay between two nodes where none was measured")
    default_rate: float = _setting(1000.0, "tuples/s", "service rate taken until one was measured", least=1e-6)
    method: str = _setting("restricted", "", "how S-EDRP is solved", choices=METHODS)
    solve_limit_s: float = _setting(8.0, "s", "time for solving; then the best so far", least=0.1)
    seed: int = _setting(0, "", "seed of the solver and of the policy")
    # the coordinator
    mode: str = _setting("live", "", "live: where no executor moves, tables change without a stop", choices=MODES)
    ahead_bytes: int = _setting(4096, "bytes", "state that changes hands is copied ahead if it is more")
    ahead_s: float = _setting(600.0, "s", "deadline of copying ahead: then the plan is given up", least=0.1)
    handover_s: float = _setting(60.0, "s", "deadline of a handover: then the newest cut is restored", least=0.1)
    pause_s: float = _setting(20.0, "s", "deadline of barrier 1: then the reconfiguration is given up", least=0.1)
    move_s: float = _setting(10.0, "s", "time between two calls of rebalance", least=0.1)
    restore_s: float = _setting(60.0, "s", "deadline of barrier 2: then it is tried again", least=0.1)
    checkpoint_every_s: float = _setting(15.0, "s", "between checkpoints, at most; the first after a third", least=0.1)
    checkpoint_least_s: float = _setting(2.0, "s", "between checkpoints, at least, while state is small", least=0.1)
    checkpoint_s: float = _setting(10.0, "s", "deadline of a checkpoint", least=0.1)
    session_s: float = _setting(6.0, "s", "session with ZooKeeper: a dead leader's lock is free after it", least=1.0)
    restore_from_start: bool = _setting(False, "", "with no readable cut, begin again with empty state; else wait")
    silent_s: float = _setting(2.0, "s", "a task that is not heard for so long is lost: others take over (0: never)")

    def __post_init__(self) -> None:
        for entry in fields(self):
            _check(entry.name, getattr(self, entry.name), entry)
        total = self.w_r + self.w_c + self.w_d
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ConfigError(
                f"settings w_r, w_c, w_d are {self.w_r:g}, {self.w_c:g}, {self.w_d:g}; their sum is {total:g}.",
                remedy="Make the sum 1.",
            )

    @property
    def downtime(self) -> str:
        """The downtime model in force."""
        if self.downtime_model != "auto":
            return self.downtime_model
        return "live" if self.mode == "live" else "storm"

    @property
    def limits(self) -> Limits:
        """The coordinator's part."""
        return Limits(
            live=self.mode == "live", handover_s=self.handover_s,
            ahead_bytes=self.ahead_bytes, ahead_s=self.ahead_s,
            pause_s=self.pause_s, move_s=self.move_s, restore_s=self.restore_s, checkpoint_s=self.checkpoint_s,
            checkpoint_every_s=self.checkpoint_every_s, checkpoint_least_s=self.checkpoint_least_s,
            restore_from_start=self.restore_from_start,
        )  # fmt: skip


def _check(name: str, value: object, entry: Any) -> None:
    kind = type(entry.default)
    right = type(value) is kind or (kind is float and type(value) is int)
    if not right:
        raise ConfigError(
            f"setting {name!r} is {value!r}, of type {type(value).__name__}.",
            remedy=f"Give {_a(kind)}, such as {entry.default!r}.",
        )
    choices = entry.metadata["choices"]
    if choices and value not in choices:
        raise ConfigError(f"setting {name!r} is {value!r}.", remedy=f"Choose one of {', '.join(choices)}.")
    if kind in (int, float) and not (math.isfinite(value) and value >= entry.metadata["least"]):
        raise ConfigError(
            f"setting {name!r} is {value!r}.", remedy=f"Give a number of at least {entry.metadata['least']:g}."
        )


def _a(kind: type) -> str:
    return {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}[kind]


def settings_from(document: Mapping[str, object], options: Sequence[str] = ()) -> Settings:
    """Settings of a parsed file, overridden by `key=value` texts. Raises ConfigError naming key and value."""
    values = dict(document)
    known = {entry.name: entry for entry in fields(Settings)}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals:
            raise ConfigError(f"option {option!r} has no '='.", remedy="Write it as -o key=value.")
        values[key] = _parse(key, text, type(known[key].default)) if key in known else text
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=3, cutoff=0.4)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Known settings: {', '.join(known)}."
            raise ConfigError(f"unknown setting {key!r} (value {values[key]!r}).", remedy=hint)
    return Settings(**values)  # type: ignore[arg-type]


def _parse(key: str, text: str, kind: type) -> object:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"setting {key!r} is {text!r}.", remedy="Give true or false.")
        return text.lower() == "true"
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"setting {key!r} is {text!r}.", remedy=f"Give {_a(kind)}.") from None


def describe() -> str:
    """One line for each setting: name, default, unit, meaning."""
    lines = []
    for entry in fields(Settings):
        unit = f" {entry.metadata['unit']}" if entry.metadata["unit"] else ""
        choices = entry.metadata["choices"]
        more = f" ({', '.join(choices)})" if choices else ""
        lines.append(f"{entry.name} = {entry.default!r}{unit}: {entry.metadata['about']}{more}")
    return "\n".join(lines)
