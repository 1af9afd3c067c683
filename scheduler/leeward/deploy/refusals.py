"""Facts that forbid a rollout, each in a sentence that names host, field, value and remedy. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from leeward.deploy.facts import Facts, kept_path
from leeward.deploy.inventory import Host, Role
from leeward.deploy.wanted import PLUGIN_JAR, Wanted

#: Releases of Storm that the plugin loads in, from and below.
STORM_FROM, STORM_BELOW = (2, 4), (3,)
#: Release of Python that the service and tasks need.
PYTHON_FROM = (3, 11)
#: Bytes that stay free on each file system.
RESERVE = 16 << 20


def release(text: str) -> tuple[int, ...]:
    """The numbers of a version, as far as it has them."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def refusals(wanted: Sequence[Wanted], facts: Mapping[str, Facts], *, replace: bool) -> list[str]:
    """All reasons, host by host. `replace`: a plugin that no rollout put there may be replaced."""
    return [
        f"host {each.host.name}: {reason}"
        for each in wanted
        for reason in _of_host(each, facts[each.host.name], replace=replace)
    ]


def _of_host(wanted: Wanted, facts: Facts, *, replace: bool) -> Iterator[str]:
    if wanted.host.roles & {Role.NIMBUS, Role.SUPERVISOR}:
        yield from _storm(wanted.host, facts)
    if Role.NIMBUS in wanted.host.roles:
        yield from _plugin(wanted, facts, replace=replace)
    if Role.SERVICE in wanted.host.roles and wanted.venv is None:
        yield "wheel is missing, and the service is installed from it. Give wheel=build/wheel/leeward-VERSION.whl."
    if wanted.venv is not None and wanted.venv.digest not in facts.venvs and release(facts.python) < PYTHON_FROM:
        shown = facts.python or "not there"
        yield f"python is {shown}, and 3.11 or newer is needed. Install it, or name it in the inventory (python = ...)."
    yield from _disk(wanted, facts)


def _storm(host: Host, facts: Facts) -> Iterator[str]:
    if not facts.storm_version:
        yield f"storm_home is {host.storm_home}, and there is no lib/storm-server-*.jar in it. Name Storm's folder."
    elif not STORM_FROM <= release(facts.storm_version) < STORM_BELOW:
        yield (
            f"Storm is {facts.storm_version}, and the plugin needs 2.4 or newer, below 3. "
            "Install another Storm there, or leave this host out of the inventory."
        )


def _plugin(wanted: Wanted, facts: Facts, *, replace: bool) -> Iterator[str]:
    path = f"{wanted.host.storm_home}/extlib-daemon/{PLUGIN_JAR}"
    for jar in sorted(facts.plugin_jars - {path}):
        yield f"plugin: {jar} is a second one in Nimbus' class path. Remove it, and deploy again."
    found, ours = facts.installed.get(path), facts.manifest
    known = ours is not None and found in (ours.present.get(path), ours.previous.get(path))
    if found is not None and found != wanted.fingerprints[path] and not known and not replace:
        yield (
            f"plugin: {path} is of another version (sha256 {found[:12]}), and no rollout put it there. "
            "Remove it, or deploy with replace=1, which keeps it for a rollback."
        )


def _disk(wanted: Wanted, facts: Facts) -> Iterator[str]:
    needed: dict[str, int] = defaultdict(int)
    free = {}
    for file in wanted.files:
        if facts.installed.get(file.path) != file.digest and file.path in facts.free:
            mount, free_bytes = facts.free[file.path]
            needed[mount] += len(file.content)
            free[mount] = free_bytes
    venv = f"{wanted.host.folder}/venv"
    if wanted.venv is not None and wanted.venv.digest not in facts.venvs and venv in facts.free:
        mount, free_bytes = facts.free[venv]
        needed[mount] += wanted.venv.size
        free[mount] = free_bytes
    for mount, size in sorted(needed.items()):
        if free[mount] < size + RESERVE:
            yield (
                f"disk: {mount} has {free[mount] >> 20} MiB free, and the rollout needs {(size + RESERVE) >> 20} MiB. "
                "Free some, or name another folder in the inventory."
            )


def no_way_back(host: Host, facts: Facts) -> list[str]:
    """Reasons that forbid to take back the last rollout on this host."""
    changed = facts.manifest.changed if facts.manifest else {}
    needed = {
        kept_path(path, before)
        for path, before in changed.items()
        if before is not None and before != facts.installed.get(path)
    }
    remedy = "Only one rollout can be taken back; deploy the older version instead."
    gone = [f"host {host.name}: {kept} is gone. {remedy}" for kept in sorted(needed - facts.kept)]
    return gone + [
        f"host {host.name}: {path} was changed after the rollout, and that would be lost. "
        "Move it away, or undo the change."
        for path, before in sorted(changed.items())
        if facts.manifest
        and path in facts.manifest.present  # the manifest itself is not
        and facts.installed.get(path) not in (None, before, facts.manifest.present[path])
    ]
