"""Checks a document of settings as `leeward serve` does: policies that it names are made, and nothing is started.

`leeward validate` and the HTTP API tell the same document:

    wrong        [{setting, error, remedy}]: settings that the service would refuse, as they are found
    chosen       [{topology, policy}]: topology "" stands for all others
    not_checked  [{setting, why}]: files, servers and classes that only people of the machine may have looked at
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward.control.registry import NONE, load, make_policy, names, setting_names
from leeward.core.errors import ConfigError, LeewardError
from leeward.core.options import local_names, read, refuse_unknown
from leeward.core.settings import Chosen, Settings, settings_from, with_options

#: The name of a setting in an error is the first word in quotes.
_NAMED = re.compile(r"'([\w.:-]+)'")


def refuse_local(options: Sequence[str]) -> None:
    """Raises ConfigError for `key=value` texts that only people of the machine may give.

    These name a file, a server, or a class that is not installed as a policy.
    """
    for option in options:
        key, _, value = option.partition("=")
        table, _, name = key.rpartition(".")
        if key == "policy" and ":" in value:
            raise ConfigError(
                f"setting 'policy' is {value!r}, which is no installed policy.", remedy=f"Use one of {list(names())}."
            )
        if ":" in table or name in _local(table):
            raise ConfigError(
                f"setting {key!r} names what is outside of the service.",
                remedy="Set it where leeward serve is started, or use the command of the same name.",
            )


def with_asked_options(chosen: Chosen, options: Sequence[str]) -> Chosen:
    """The settings in force, with the options of a request over HTTP. Raises ConfigError."""
    refuse_local(options)
    return with_options(chosen, options)


def names_files(chosen: Chosen) -> bool:
    """It names files, servers or classes of the user's own, and so may mean something else though it stays the same."""
    every = (chosen, *chosen.topologies.values())
    policies = [(name, values) for one in every for name, values in one.policies.items()]
    named = [getattr(one.service, name) for one in every for name in local_names(Settings)]
    named += [values.get(name) for policy, values in policies for name in _local(policy)]
    return any(named) or any(":" in one.service.policy for one in every)


def checked(
    document: Mapping[str, object], options: Sequence[str], *, network: Callable[[str], object] | None = None
) -> dict[str, Any]:
    """See the module. `network`: reads a network file, or raises LeewardError; None: files, servers and classes that
    are not installed are not looked at, and named in `not_checked`.
    """
    told: dict[str, Any] = {"wrong": [], "chosen": [], "not_checked": []}
    try:
        chosen = settings_from(document, options, more=setting_names)
    except LeewardError as error:
        told["wrong"].append(_wrong(error))
        return told
    for topology in ("", *sorted(chosen.topologies)):
        one = chosen.of(topology)
        told["chosen"].append({"topology": topology, "policy": one.service.policy})
        _check_one(one, network, told)
    return told


def _check_one(chosen: Chosen, network: Callable[[str], object] | None, told: dict[str, Any]) -> None:
    closed = network is None
    tables = dict(chosen.policies)
    if chosen.service.policy != NONE:
        tables.setdefault(chosen.service.policy, {})
    for policy, values in sorted(tables.items()):  # also of those that are not chosen
        try:
            _check_policy(policy, values, told, closed=closed)
        except LeewardError as error:
            _add(told["wrong"], _wrong(error))
    if network is not None:
        try:
            network(chosen.service.network)
        except LeewardError as error:
            _add(told["wrong"], _wrong(error))
    elif chosen.service.network:
        _add(told["not_checked"], {"setting": "network", "why": "it names a file"})


def _check_policy(policy: str, values: Mapping[str, object], told: dict[str, Any], *, closed: bool) -> None:
    """Raises LeewardError for what is wrong."""
    if closed and ":" in policy:
        _add(told["not_checked"], {"setting": policy, "why": "it names a class that is not installed as a policy"})
        return
    if ":" not in policy:
        refuse_unknown("policy", {policy: dict(values)}, names())
    named = sorted(name for name in values if closed and name in _local(policy) and values[name])
    if not named:
        make_policy(policy, values)
        return
    read(load(policy).Settings, values, where=f"{policy}.")  # made, it might read them
    for name in named:
        _add(told["not_checked"], {"setting": f"{policy}.{name}", "why": "it names a file or a server"})


def _local(policy: str) -> frozenset[str]:
    """Names of settings that only people of the machine may set; "" is the service."""
    if not policy:
        return local_names(Settings)
    kind = getattr(load(policy), "Settings", None) if policy in names() else None
    return local_names(kind) if kind is not None else frozenset()


def _wrong(error: LeewardError) -> dict[str, str]:
    named = _NAMED.search(error.message)
    return {"setting": named[1] if named else "", "error": error.message, "remedy": error.remedy}


def _add(entries: list[dict[str, str]], entry: dict[str, str]) -> None:
    if entry not in entries:
        entries.append(entry)
