"""Carries a rollout out: asks all hosts first, then takes one step after the other, and goes back when one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from leeward.core.errors import ConfigError
from leeward.deploy.errors import HostError, LostHostError, RollBackFailedError, RolledBackError
from leeward.deploy.facts import Facts, kept_path, question, read_answer
from leeward.deploy.health import Reaches
from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.plan import Plan, plan_rollback, plan_rollout, way_back
from leeward.deploy.steps import Check, Prune, Restart, Restore, Stage, StageVenv, Step, Unstage, q
from leeward.deploy.wanted import Artifacts, managed_paths

Report = Callable[[str], None]
_PATIENCE_S, _SLOW_S = 60.0, 1800.0


class Transport(Reaches, Protocol):
    """How a host is reached and sent files."""

    def put(self, host: Host, content: bytes | Path, path: str) -> None:
        """Write a file on the host. Raises HostError."""


class Waits(Protocol):
    """How a daemon's health is awaited."""

    def remember(self, host: Host) -> None:
        """Note what Nimbus knows before the rollout."""

    def wait(self, step: Check, host: Host) -> None:
        """Return when the daemon is healthy. Raises HostError."""


class Shell:
    """Rollouts of one inventory over one transport."""

    def __init__(self, inventory: Inventory, way: Transport, health: Waits, report: Report) -> None:
        self._inventory, self._way, self._health, self._report = inventory, way, health, report

    def facts(self, hosts: Sequence[Host]) -> dict[str, Facts]:
        """The facts of each host. Raises HostError that names every host that does not answer."""
        found, failed = {}, []
        for host in hosts:
            try:
                answer = self._way.run(host, question(host, managed_paths(host), self._inventory.python))
                found[host.name] = read_answer(host, answer)
            except (HostError, ConfigError) as error:
                failed.append(str(error))
        if failed:
            raise HostError("\n".join(["nothing was changed:", *failed]))
        return found

    def deploy(self, hosts: Sequence[Host], artifacts: Artifacts, *, dry_run: bool, replace: bool = False) -> Plan:
        """Give the hosts what they shall have, or print the steps alone.

        Raises HostError or RolloutRefusedError before anything was changed, RolledBackError after all was undone.
        """
        facts = self.facts(hosts)
        plan = plan_rollout(self._inventory, hosts, artifacts, facts, replace=replace)
        self._carry_out(plan, hosts, facts, dry_run=dry_run)
        return plan

    def rollback(self, hosts: Sequence[Host], *, dry_run: bool) -> Plan:
        """Take back the last rollout of these hosts. Raises HostError, RolloutRefusedError, RollBackFailedError."""
        facts = self.facts(hosts)
        plan = plan_rollback(self._inventory, hosts, facts)
        self._tell(plan)
        if not dry_run:
            self._remember(plan, hosts)
            self._back(plan, hosts, "the rollback that you asked for")
        return plan

    def status(self, hosts: Sequence[Host]) -> list[str]:
        """A few lines for each host: its rollout, what differs from it, and whether the service runs."""
        facts = self.facts(hosts)
        return [line for host in hosts for line in _status(host, facts[host.name])]

    def _carry_out(self, plan: Plan, hosts: Sequence[Host], facts: Mapping[str, Facts], *, dry_run: bool) -> None:
        self._tell(plan)
        if dry_run or not plan.steps:
            return
        self._remember(plan, hosts)
        tried: list[Step] = []
        by_name = {host.name: host for host in hosts}
        for step, line in zip(plan.steps, plan.lines, strict=True):
            tried.append(step)
            try:
                self._take(step, by_name[step.host])
            except HostError as error:
                if isinstance(step, Prune):  # the rollout is complete, and the next one prunes again
                    self._report(f"note: {error}")
                    continue
                self._report(f"FAILED{line}\n{error}")
                back = way_back(tried, facts)
                self._tell(back)
                self._back(back, hosts, f"step {len(tried)} failed: {error}")
                raise RolledBackError(
                    f"step {len(tried)} ({step.text}) failed, and all hosts have again what they had before: {error}"
                ) from None
            except BaseException:
                self._report(f"broken off in step {len(tried)}; deploy again to finish, or roll back")
                raise
            self._report(f"done  {line}")

    def _tell(self, plan: Plan) -> None:
        for line in plan.lines or ["nothing to do: all hosts have what they shall have"]:
            self._report(f"      {line}")
        for note in plan.notes:
            self._report(f"note: {note}")

    def _remember(self, plan: Plan, hosts: Sequence[Host]) -> None:
        asked = {step.host for step in plan.steps if isinstance(step, Check) and step.role is Role.NIMBUS}
        for host in hosts:
            if host.name in asked:
                self._health.remember(host)

    def _back(self, plan: Plan, hosts: Sequence[Host], why: str) -> None:
        """Take every step, also after one that failed: the more is as before, the better. A lost host is left alone."""
        failed, lost = [], set()
        needed: set[tuple[str, str]] = set()  # (host, path) of files that still have to be put back
        by_name = {host.name: host for host in hosts}
        for step, line in zip(plan.steps, plan.lines, strict=True):
            if step.host in lost or (isinstance(step, Unstage) and (step.host, step.path) in needed):
                continue
            try:
                self._take(step, by_name[step.host])
            except LostHostError as error:
                lost.add(step.host)
                failed.append(f"{error} When it is back, run `fab rollback`, or deploy again.")
                self._report(f"FAILED{line}\n{error}")
            except HostError as error:
                failed.append(f"{step.host}: {step.text}: {error}")
                self._report(f"FAILED{line}\n{error}")
                if isinstance(step, Restore) and step.before is not None:
                    needed.add((step.host, kept_path(step.path, step.before)))
            else:
                self._report(f"done  {line}")
        if failed:
            raise RollBackFailedError("\n".join([why, "not everything is as it was before:", *failed]))

    def _take(self, step: Step, host: Host) -> None:
        if isinstance(step, Check):
            self._health.wait(step, host)
            return
        if isinstance(step, Stage):
            at = q(step.waiting)
            # private from its first moment, as it may hold passwords
            self._way.run(host, f"umask 022 && mkdir -p $(dirname {at}) && umask 077 && rm -f {at} && : > {at}")
            self._way.put(host, step.file.content, step.waiting)
        elif isinstance(step, StageVenv):
            wheels = f"{step.path}/wheels"
            self._way.run(host, f"rm -rf {q(step.path)} && umask 022 && mkdir -p {q(wheels)}")
            for wheel in step.venv.wheels:
                self._way.put(host, Path(wheel), f"{wheels}/{Path(wheel).name}")
            self._way.put(host, step.venv.requirements, f"{wheels}/requirements.txt")
        slow = isinstance(step, StageVenv | Restart)
        self._way.run(host, step.script, patience_s=_SLOW_S if slow else _PATIENCE_S)


def _status(host: Host, facts: Facts) -> list[str]:
    manifest = facts.manifest
    roles = ", ".join(sorted(host.roles))
    if manifest is None:
        return [f"{host.name} ({roles}): no rollout"]
    lines = [
        f"{host.name} ({roles}): rollout {manifest.number} ({manifest.rollout})"
        + ("" if manifest.complete else ", broken off")
    ]
    if facts.storm_version and host.roles & {Role.NIMBUS, Role.SUPERVISOR}:
        lines.append(f"  Storm {facts.storm_version}")
    for path, wanted in sorted(manifest.present.items()):
        found = facts.installed.get(path)
        state = "" if found == wanted else ("  MISSING" if found is None else "  CHANGED since")
        lines.append(f"  {path}  {wanted.removeprefix('-> ')[:23]}{state}")
    if Role.SERVICE in host.roles:
        lines.append(f"  the service {'runs' if facts.service_runs else 'does not run'}")
    return lines


def restarts(plan: Plan) -> list[Restart]:
    """The steps that restart a daemon."""
    return [step for step in plan.steps if isinstance(step, Restart)]
