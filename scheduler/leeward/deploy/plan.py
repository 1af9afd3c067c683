"""From facts and wanted files to the ordered steps of a rollout, of a rollback, and of the way back after a failure.

Order: all that takes time or disk is written beside the present versions on all hosts (stage); then each file is put in
place by a rename (switch); then Nimbus, then the service is restarted, if something of theirs changed, and asked
whether it is healthy; then each host's manifest says that the rollout is complete. So a full disk or a lost host
before the first switch leaves nothing changed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from leeward.core.errors import ConfigError
from leeward.deploy.errors import RolloutRefusedError
from leeward.deploy.facts import Facts, Manifest, kept_path, manifest_path
from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.refusals import no_way_back, refusals
from leeward.deploy.steps import (
    Check,
    Prune,
    Restart,
    Restore,
    Stage,
    StageVenv,
    Step,
    Switch,
    SwitchLink,
    Unstage,
    service_command,
)
from leeward.deploy.wanted import PLUGIN_JAR, Artifacts, File, Wanted, digest_of, unit_path, wanted_of

#: Hosts are switched in this order; those with a daemon to restart come last.
_ORDER = (Role.DATASTORE, Role.SUPERVISOR, Role.NIMBUS, Role.SERVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in their order, and what else people should know."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The steps for people, printed before they are taken, or in place of that."""
        return [f"{number:3}. {step.host}: {step.text}" for number, step in enumerate(self.steps, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The changes of a rollout on one host."""

    wanted: Wanted
    facts: Facts
    #: path -> fingerprint before this rollout, or before the one that was begun and never ended
    before: Mapping[str, str | None]
    number: int
    rollout: str

    @property
    def host(self) -> Host:
        return self.wanted.host

    @property
    def begun(self) -> bool:
        """An earlier rollout broke off here."""
        return self.facts.manifest is not None and not self.facts.manifest.complete

    @property
    def manifest_before(self) -> str | None:
        """Fingerprint of the manifest to which a rollback leads; never that of a rollout that broke off."""
        path = manifest_path(self.host)
        if self.facts.manifest is not None and not self.facts.manifest.complete:
            return self.facts.manifest.previous.get(path)
        return self.facts.installed.get(path)

    @property
    def to_switch(self) -> list[str]:
        """Paths that have another version now."""
        return [path for path, after in self.wanted.fingerprints.items() if self.facts.installed.get(path) != after]

    @property
    def changed(self) -> set[str]:
        """Paths whose version differs from that with which the daemons were started."""
        return {path for path, after in self.wanted.fingerprints.items() if self.before[path] != after}

    @property
    def is_done(self) -> bool:
        """The host has everything, and says so."""
        manifest = self.facts.manifest
        return (
            not self.to_switch
            and manifest is not None
            and manifest.complete
            and dict(manifest.present) == dict(self.wanted.fingerprints)
        )


def plan_rollout(
    inventory: Inventory,
    hosts: Sequence[Host],
    artifacts: Artifacts,
    facts: Mapping[str, Facts],
    *,
    replace: bool = False,
) -> Plan:
    """The steps that give these hosts what they shall have. Raises RolloutRefusedError with all reasons against it."""
    wanted, against = [], []
    for host in sorted(hosts, key=lambda host: max(_ORDER.index(role) for role in host.roles)):
        try:
            wanted.append(wanted_of(host, inventory, artifacts, facts[host.name]))
        except ConfigError as error:
            against.append(str(error))
    against += refusals(wanted, facts, replace=replace)
    if against:
        raise RolloutRefusedError("\n".join(["nothing was changed:", *against]))
    changes = _changes(wanted, facts)
    todo = [change for change in changes if not change.is_done]
    steps: list[Step] = [step for change in todo for step in _stage(change, inventory)]
    steps += [step for change in todo for step in _switch(change)]
    steps += _restarts(changes, inventory)
    steps += [_complete(change) for change in todo]
    steps += [step for change in todo for step in _prune(change)]
    if steps:
        steps = [Check(host=host.name, role=Role.DATASTORE) for host in hosts if Role.DATASTORE in host.roles] + steps
    return Plan(steps=tuple(steps), notes=tuple(_notes(changes)))


def _changes(wanted: Sequence[Wanted], facts: Mapping[str, Facts]) -> list[_Change]:
    number = _next_number([facts[each.host.name] for each in wanted])
    all_of_it = repr((number, [sorted(each.fingerprints.items()) for each in wanted]))
    changes = []
    for each in wanted:
        found = facts[each.host.name]
        begun = found.manifest.previous if found.manifest and not found.manifest.complete else {}
        before = {path: begun.get(path, found.installed.get(path)) for path in each.fingerprints}
        rollout = digest_of(all_of_it.encode())[:12]
        changes.append(_Change(wanted=each, facts=found, before=before, number=number, rollout=rollout))
    return changes


def _next_number(facts: Iterable[Facts]) -> int:
    """One more than the last rollout's; the same if that broke off, as this one goes on with it."""
    manifests = [found.manifest for found in facts if found.manifest is not None]
    last = max((manifest.number for manifest in manifests), default=0)
    return last + all(manifest.complete for manifest in manifests if manifest.number == last)


def _stage(change: _Change, inventory: Inventory) -> Iterator[Step]:
    name, venv = change.host.name, change.wanted.venv
    for file in change.wanted.files:
        if file.path in change.to_switch:
            yield Stage(host=name, file=file)
    for complete in (False, True):
        yield Stage(host=name, file=_manifest(change, complete=complete), at=_waiting(change.host, complete=complete))
    if venv is not None and venv.digest not in change.facts.venvs:
        yield StageVenv(host=name, folder=change.host.folder, venv=venv, python=inventory.python)


def _manifest(change: _Change, *, complete: bool) -> File:
    path = manifest_path(change.host)
    fingerprints = change.wanted.fingerprints
    manifest = Manifest(
        number=change.number,
        rollout=change.rollout,
        complete=complete,
        present=fingerprints,
        previous={**change.before, path: change.manifest_before},
    )
    return File(path=path, content=manifest.to_json().encode())


def _waiting(host: Host, *, complete: bool) -> str:
    return f"{manifest_path(host)}.{'complete' if complete else 'begun'}"


def _switch(change: _Change) -> Iterator[Step]:
    """The manifest first: a rollout that breaks off is known as begun, with the way back."""
    host, found = change.host, change.facts.installed
    path, digest = manifest_path(host), _manifest(change, complete=False).digest
    waiting = _waiting(host, complete=False)
    yield Switch(host=host.name, path=path, before=found.get(path), after=digest, at=waiting)
    for path in change.to_switch:
        after = change.wanted.fingerprints[path]
        if after.startswith("-> "):
            yield SwitchLink(host=host.name, path=path, before=found.get(path), after=after)
        else:
            yield Switch(host=host.name, path=path, before=found.get(path), after=after)


def _complete(change: _Change) -> Step:
    path, digest = manifest_path(change.host), _manifest(change, complete=True).digest
    waiting = _waiting(change.host, complete=True)
    return Switch(host=change.host.name, path=path, before=None, after=digest, at=waiting)


def _prune(change: _Change) -> Iterator[Step]:
    host, facts = change.host, change.facts
    previous = dict(change.before) | {manifest_path(host): change.manifest_before}
    needed = {kept_path(path, before) for path, before in previous.items() if before is not None}
    venvs = {text.rpartition("/")[2] for text in (*change.wanted.fingerprints.values(), *previous.values()) if text}
    gone = [*sorted(facts.kept - needed), *(f"{host.folder}/venvs/{each}" for each in sorted(facts.venvs - venvs))]
    if gone:
        yield Prune(host=host.name, paths=tuple(gone))


def _restarts(changes: Iterable[_Change], inventory: Inventory) -> list[Step]:
    """Nimbus only for its jar, its settings or its secrets; the service for any of its files, or if it does not run."""
    steps: list[Step] = []
    for change in changes:
        if Role.NIMBUS in change.host.roles and change.changed & _of_nimbus(change.host):
            steps += _nimbus(change.host, inventory)
    for change in changes:
        if Role.SERVICE in change.host.roles and (
            change.changed & _of_service(change.host) or not change.facts.service_runs
        ):
            steps += _service(change.host, systemd=change.facts.systemd)
    return steps


def _nimbus(host: Host, inventory: Inventory) -> list[Step]:
    return [
        Restart(host=host.name, role=Role.NIMBUS, command=inventory.restart_nimbus),
        Check(host=host.name, role=Role.NIMBUS),
    ]


def _service(host: Host, *, systemd: bool) -> list[Step]:
    command = service_command("restart", host.folder, systemd=systemd)
    status = service_command("status", host.folder, systemd=systemd)
    return [
        Restart(host=host.name, role=Role.SERVICE, command=command),
        Check(host=host.name, role=Role.SERVICE, status=status),
    ]


def _of_nimbus(host: Host) -> set[str]:
    home = host.storm_home
    return {f"{home}/extlib-daemon/{PLUGIN_JAR}", f"{home}/conf/storm.yaml", f"{host.folder}/secrets.json"}


def _of_service(host: Host) -> set[str]:
    own = {f"{host.folder}/{name}" for name in ("venv", "leeward.toml", "service.sh", "secrets.json")}
    return own | {unit_path()}


def _notes(changes: Iterable[_Change]) -> Iterator[str]:
    for change in changes:
        conf = f"{change.host.storm_home}/conf/storm.yaml"
        if Role.SUPERVISOR in change.host.roles and conf in change.changed:
            yield (
                f"{change.host.name}: new workers take {conf} at once; the supervisor itself goes on with its old "
                "settings until you restart it"
            )
        left = sorted(set(change.facts.manifest.present if change.facts.manifest else ()) - set(change.before))
        if left:
            yield f"{change.host.name}: {', '.join(left)} is no longer wanted, and stays until you remove it"


def plan_rollback(inventory: Inventory, hosts: Sequence[Host], facts: Mapping[str, Facts]) -> Plan:
    """The steps that take back the last rollout, on those of these hosts that it changed.

    Each host's manifest goes last, so that a rollback that broke off can be done again. Raises RolloutRefusedError with
    all reasons against it.
    """
    taken = _of_last_rollout(hosts, facts)
    against = [reason for host in taken for reason in no_way_back(host, facts[host.name])]
    if against:
        raise RolloutRefusedError("\n".join(["nothing was changed:", *against]))
    backs = [_Back(host, facts[host.name]) for host in taken]
    steps: list[Step] = [step for back in backs for step in back.stops]
    steps += [step for back in backs for step in back.restores]
    for back in backs:
        if Role.NIMBUS in back.host.roles and back.changed & _of_nimbus(back.host):
            steps += _nimbus(back.host, inventory)
    for back in backs:
        if Role.SERVICE in back.host.roles and back.changed & _of_service(back.host) and not back.stops:
            steps += _service(back.host, systemd=back.facts.systemd)
    steps += [back.last for back in backs]
    return Plan(steps=tuple(steps))


def _of_last_rollout(hosts: Sequence[Host], facts: Mapping[str, Facts]) -> list[Host]:
    known = {host: found for host in hosts if (found := facts[host.name].manifest) is not None}
    if not known:
        names = ", ".join(host.name for host in hosts)
        raise RolloutRefusedError(f"no rollout is known on {names}, so nothing can be taken back.")
    number = max(manifest.number for manifest in known.values())
    last = {host: manifest.rollout for host, manifest in known.items() if manifest.number == number}
    begun = {manifest.rollout for host, manifest in known.items() if host in last and not manifest.complete}
    complete = {rollout for host, rollout in last.items() if known[host].complete} - begun
    if len(complete) + bool(begun) > 1:
        names = ", ".join(f"{host.name} {rollout}" for host, rollout in last.items())
        raise RolloutRefusedError(f"hosts: their last rollouts differ ({names}). Name those of one with -R.")
    return sorted(last, key=lambda host: max(_ORDER.index(role) for role in host.roles))


class _Back:
    """The way back of one host from its last rollout, which `no_way_back` does not forbid."""

    def __init__(self, host: Host, facts: Facts) -> None:
        assert facts.manifest is not None, "only hosts of the last rollout"
        self.host, self.facts = host, facts
        own = manifest_path(host)
        changed = {path: value for path, value in facts.manifest.changed.items() if path != own}
        self.changed = changed.keys()
        self.restores = [
            Restore(host=host.name, path=path, before=value)
            for path, value in changed.items()
            if facts.installed.get(path) != value
        ]
        self.last = Restore(host=host.name, path=own, before=facts.manifest.previous.get(own))
        self.stops: list[Step] = []
        if Role.SERVICE in host.roles and facts.manifest.previous.get(f"{host.folder}/venv") is None:
            stop = service_command("stop", host.folder, systemd=facts.systemd)
            self.stops.append(Restart(host=host.name, role=Role.SERVICE, command=stop))


def way_back(tried: Sequence[Step], facts: Mapping[str, Facts]) -> Plan:
    """The steps that undo all that was tried, the last of which failed, and may have been done in part."""
    switched = [step for step in tried if isinstance(step, Switch | SwitchLink)]
    restarted = [step for step in tried if isinstance(step, Restart)]
    new = {switch.host: switch.path for switch in switched if _is_new_venv(switch, facts)}
    stopped = {restart: new[restart.host] for restart in restarted if _is_new_service(restart, new)}
    steps: list[Step] = []
    for restart, path in stopped.items():
        stop = service_command("stop", path.rpartition("/")[0], systemd=facts[restart.host].systemd)
        steps.append(Restart(host=restart.host, role=Role.SERVICE, command=stop))
    for host, path in dict.fromkeys((switch.host, switch.path) for switch in reversed(switched)):
        steps.append(Restore(host=host, path=path, before=facts[host].installed.get(path)))
    for restart in restarted:
        if restart not in stopped:
            steps += [restart, _check_of(restart, facts)]
    steps += [Unstage(host=step.host, path=step.waiting) for step in tried if isinstance(step, Stage)]
    steps += [Unstage(host=step.host, path=step.path) for step in tried if isinstance(step, StageVenv)]
    steps += _without_new_kept(switched, facts)
    return Plan(steps=tuple(steps))


def _is_new_venv(step: Switch | SwitchLink, facts: Mapping[str, Facts]) -> bool:
    return step.path.endswith("/venv") and facts[step.host].installed.get(step.path) is None


def _is_new_service(step: Restart, new: Mapping[str, str]) -> bool:
    return step.role is Role.SERVICE and step.host in new


def _check_of(step: Restart, facts: Mapping[str, Facts]) -> Check:
    status = ""
    if step.role is Role.SERVICE:
        folder = step.command.rpartition("/service.sh")[0]
        status = service_command("status", folder, systemd=facts[step.host].systemd)
    return Check(host=step.host, role=step.role, status=status)


def _without_new_kept(switched: Sequence[Switch | SwitchLink], facts: Mapping[str, Facts]) -> Iterator[Step]:
    for step in switched:
        if step.before is not None:
            kept = kept_path(step.path, step.before)
            if kept not in facts[step.host].kept:
                yield Unstage(host=step.host, path=kept)
