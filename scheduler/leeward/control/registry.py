"""Finds policies, routers, disciplines, workloads and stores by their names: entry points of installed packages.

    [project.entry-points."leeward.policies"]
    frugal = "my_package.frugal:Frugal"

A module of the user's own that is not installed is named as `module:Class`; it has to be importable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from leeward.control.joint import Joint
from leeward.control.ports import Post
from leeward.core.errors import ConfigError
from leeward.core.options import describe, read, refuse_unknown
from leeward.core.peers import Directory
from leeward.core.policy import JointPolicy, Policy
from leeward.core.settings import Chosen, Settings
from leeward.core.workload import Workload

POLICIES, ROUTERS, DISCIPLINES = "leeward.policies", "leeward.routers", "leeward.disciplines"
WORKLOADS = "leeward.workloads"
STORES = "leeward.stores"
EXPERIMENTS = "leeward.experiments"
KINDS = {
    POLICIES: "policy",
    ROUTERS: "router",
    DISCIPLINES: "discipline",
    WORKLOADS: "workload",
    EXPERIMENTS: "experiment",
    STORES: "store",
}
#: Name of a policy that decides nothing.
NONE = "none"


def names(group: str = POLICIES) -> tuple[str, ...]:
    """The installed names of a group, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def load(name: str, group: str = POLICIES) -> Any:
    """The class of this name. Raises ConfigError if there is none, if two packages claim it, or if it fails to load."""
    module, _, attribute = where(name, group).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{group}: {name!r} cannot be loaded ({error}).",
            remedy=f"Make {module} importable, with {attribute} in it.",
        ) from error


def where(name: str, group: str = POLICIES) -> str:
    """`module:Class` of this name. Raises ConfigError if there is none, or if two packages claim it."""
    if ":" in name:
        return name
    points = entry_points(group=group)
    found = sorted({point.value for point in points if point.name == name})
    if not found:
        refuse_unknown(KINDS[group], {name: group}, sorted({point.name for point in points}))
    if len(found) > 1:
        raise ConfigError(f"{group}: {name!r} is {' and '.join(found)}.", remedy="Uninstall one of them.")
    return found[0]


def policy_of(chosen: Chosen) -> Policy | None:
    """The policy that the settings name, made with its own settings; None if only people decide."""
    name = chosen.service.policy
    tables = {table for table in chosen.policies if ":" not in table}
    if tables:
        refuse_unknown("policy", {table: dict(chosen.policies[table]) for table in sorted(tables)}, names())
    return None if name == NONE else make_policy(name, chosen.policies.get(name, {}))


class Policies:
    """The policies of several topologies: each its own, but one for all that chose the same joint policy with
    the same settings."""

    def __init__(self, chosen: Chosen, post: Callable[[Directory], Post]) -> None:
        """`post`: opens the way to the peers of a policy that asks some."""
        self._chosen, self._post = chosen, post
        self._joint: dict[str, Joint] = {}  # by name and settings
        self._lock = threading.Lock()

    def of(self, topology: str) -> Policy | None:
        """The policy of this topology; None if only people decide. Raises ConfigError as `policy_of`."""
        chosen = self._chosen.of(topology)
        policy = policy_of(chosen)
        if policy is None or not hasattr(policy, "decide_all"):
            return policy
        with self._lock:
            key = f"{chosen.service.policy} {sorted(chosen.policies.get(chosen.service.policy, {}).items())}"
            if key not in self._joint:
                directory = policy.directory() if hasattr(policy, "directory") else None
                self._joint[key] = Joint(cast(JointPolicy, policy), self._post(directory) if directory else None)
            return self._joint[key]

    def forget(self, topology: str, *, gone: bool = False) -> None:
        """It is no longer led here: joint policies are not shown it any more. `gone`: it does not run any more."""
        with self._lock:
            for joint in self._joint.values():
                joint.forget(topology, gone=gone)


def make_policy(name: str, values: Mapping[str, object]) -> Policy:
    """A policy with these of its settings. Raises ConfigError naming key, value and remedy."""
    kind = load(name)
    settings = getattr(kind, "Settings", None)
    if settings is None:
        refuse_unknown("setting", values, (), where=f"{name}.")
        policy: Policy = kind(None)
    else:
        policy = kind(read(settings, values, where=f"{name}."))
    return policy


def make_joint_policy(name: str, values: Mapping[str, object]) -> JointPolicy:
    """The same of a policy that decides about several topologies at once. Raises ConfigError for another one."""
    if name == NONE or not hasattr(load(name), "decide_all"):
        raise ConfigError(
            f"policy {name!r} does not decide about several topologies at once.",
            remedy=f"Name one that does: {', '.join(_joint_names()) or 'none is installed'}.",
        )
    return cast(JointPolicy, make_policy(name, values))


def _joint_names() -> list[str]:
    """Those installed that can be loaded."""
    found = []
    for name in names():
        with suppress(ConfigError):
            if hasattr(load(name), "decide_all"):
                found.append(name)
    return found


def make_workload(name: str, *, nodes: int, seed: int) -> Workload:
    """The workload of this name. Raises ConfigError if there is none, and FieldError for nodes that it cannot have."""
    workload: Workload = load(name, WORKLOADS)(nodes=nodes, seed=seed)
    return workload


def setting_names() -> tuple[str, ...]:
    """`policy.setting`, of each installed policy."""
    return tuple(f"{name}.{entry.name}" for name, kind in settings_classes() for entry in fields(kind))


def describe_all() -> str:
    """One line for each setting, of the service and of each installed policy."""
    return "\n".join([describe(Settings), *(describe(kind, where=f"{name}.") for name, kind in settings_classes())])


def settings_classes() -> list[tuple[str, type]]:
    """(name, class of settings) of each installed policy that has settings."""
    found = [(name, getattr(load(name), "Settings", None)) for name in names()]
    return [(name, kind) for name, kind in found if kind is not None]
