"""The steps of a rollout, each in words and as a script for `sh`. Pure.

A step is all or nothing on its host: a new version is written beside the present one and put in place by one rename,
and the present one is kept by a second name (a hard link), which takes no space.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from leeward.deploy.facts import UNIT, kept_path, new_path
from leeward.deploy.inventory import Role
from leeward.deploy.wanted import File, Venv

q = shlex.quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(ABC):
    """A step on one host. `script` is "" where the shell does more than run a script."""

    host: str

    @property
    @abstractmethod
    def text(self) -> str:
        """A line for people, the same in a dry run and in a real one."""

    @property
    @abstractmethod
    def script(self) -> str:
        """Its commands for `sh`, which end with code 0 or with a message and another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Step):
    """Write a new version of a file beside the present one. The shell sends the content, then runs the script."""

    file: File
    #: the name under which it waits; "": the file's own with an ending
    at: str = ""

    @property
    def waiting(self) -> str:
        """The name under which it waits."""
        return self.at or new_path(self.file.path)

    @property
    def text(self) -> str:
        """A line for people."""
        size = len(self.file.content)
        return f"send {self.waiting} ({size} bytes, sha256 {self.file.digest[:12]}, mode {self.file.mode:o})"

    @property
    def script(self) -> str:
        """Checks what arrived, flushes it to the disk, and sets owner and mode."""
        at = q(self.waiting)
        owner = f" && chown {q(self.file.owner)}: {at}" if self.file.owner else ""
        return (
            f'found=$(sha256sum < {at} | cut -d" " -f1); '
            f'[ "$found" = {self.file.digest} ] || {{ echo "{at} has sha256 $found" >&2; exit 1; }}\n'
            f"sync {at}{owner} && chmod {self.file.mode:o} {at}{self._as_before(at)}"
        )

    def _as_before(self, at: str) -> str:
        """A file of the cluster's own keeps its mode, and its owner where this user may give that."""
        if not self.file.keeps:
            return ""
        path = q(self.file.path)
        return (
            f" && {{ [ ! -e {path} ] || {{ chmod --reference={path} {at}; "
            f"chown --reference={path} {at} 2>/dev/null || :; }}; }}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageVenv(Step):
    """Make a virtual environment beside the present one. The shell sends the wheels, then runs the script."""

    folder: str
    venv: Venv
    python: str

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{self.folder}/venvs/{self.venv.digest}"

    @property
    def text(self) -> str:
        """A line for people."""
        return f"make {self.path} from {len(self.venv.wheels)} wheels"

    @property
    def script(self) -> str:
        """Installs without a registry; the file `whole` is written last."""
        at, wheels = q(self.path), q(f"{self.path}/wheels")
        pip = f"{at}/bin/python -m pip --disable-pip-version-check install -q --no-index --no-deps --no-cache-dir"
        return (
            f"umask 022 && {q(self.python)} -m venv {at} && {pip} --find-links {wheels} -r {wheels}/requirements.txt"
            f" && rm -rf {wheels} && sync -f {at} && touch {at}/whole"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstage(Step):
    """Remove a new version that was never put in place."""

    path: str

    @property
    def text(self) -> str:
        """A line for people."""
        return f"remove {self.path}"

    @property
    def script(self) -> str:
        """Removes it if it is there."""
        return f"rm -rf {q(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Step):
    """Put a staged version in place, and keep the present one."""

    path: str
    before: str | None  #: fingerprint of the present version
    after: str
    at: str = ""  #: where the new version waits; "": beside the path

    @property
    def text(self) -> str:
        """A line for people."""
        kept = f", keep the present one as {kept_path(self.path, self.before)}" if self.before else ""
        return f"put {self.path} in place ({self.after.removeprefix('-> ')[:20]}){kept}"

    @property
    def script(self) -> str:
        """Keeps, then renames."""
        return _keep(self.path, self.before) + f"mv -fT {q(self.at or new_path(self.path))} {q(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchLink(Step):
    """Let a link lead to another target, and keep the present one."""

    path: str
    before: str | None
    after: str

    @property
    def text(self) -> str:
        """A line for people."""
        return f"let {self.path} lead to {self.after.removeprefix('-> ')}"

    @property
    def script(self) -> str:
        """Keeps, makes the new link under another name, then renames."""
        target, new = q(self.after.removeprefix("-> ")), q(new_path(self.path))
        return _keep(self.path, self.before) + f"ln -sfnT {target} {new} && mv -fT {new} {q(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Step):
    """Give a path again what it had: the kept version, or nothing."""

    path: str
    before: str | None

    @property
    def text(self) -> str:
        """A line for people."""
        what = f"put {kept_path(self.path, self.before)} back as" if self.before else "remove"
        return f"{what} {self.path}"

    @property
    def script(self) -> str:
        """A second name of the kept version, then a rename: it stays for another try. Nothing if the path has it."""
        path, new = q(self.path), q(new_path(self.path))
        if self.before is None:
            return f"rm -f {path}"
        if self.before.startswith("-> "):
            has = f'[ "$(readlink {path})" = {q(self.before.removeprefix("-> "))} ]'
        else:
            has = f'[ -f {path} ] && [ "$(sha256sum < {path} | cut -d" " -f1)" = {self.before} ]'
        kept = q(kept_path(self.path, self.before))
        return f"{{ {has}; }} || {{ rm -f {new} && cp -Pl {kept} {new} && mv -fT {new} {path}; }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(Step):
    """Restart Nimbus or the service."""

    role: Role
    command: str

    @property
    def text(self) -> str:
        """A line for people."""
        return f"restart {self.role}: {self.command}"

    @property
    def script(self) -> str:
        """The command of the inventory, or of the service."""
        return self.command


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Step):
    """Wait until a daemon is healthy; the shell asks it."""

    role: Role
    status: str = ""  #: command that succeeds while the service runs

    @property
    def text(self) -> str:
        """A line for people."""
        return f"check that {self.role} is healthy"

    @property
    def script(self) -> str:
        """None: the shell asks through ssh's connection."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune(Step):
    """Remove kept versions and virtual environments that no way back leads to."""

    paths: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """A line for people."""
        return f"remove {', '.join(self.paths)}"

    @property
    def script(self) -> str:
        """Removes each."""
        return f"rm -rf {' '.join(map(q, self.paths))}"


def service_command(action: str, folder: str, *, systemd: bool) -> str:
    """The command that starts, stops or looks after the service. systemd reads its units anew first."""
    if not systemd:
        return f"{folder}/service.sh {action}"
    if action == "status":
        return f"systemctl -q is-active {UNIT}"
    if action == "stop":
        return f"systemctl disable --now {UNIT}; systemctl daemon-reload"
    return f"systemctl daemon-reload && systemctl enable {UNIT} && systemctl {action} {UNIT}"


def _keep(path: str, before: str | None) -> str:
    """A second name for the present version. `cp -Pl` links a symbolic link itself, too."""
    if before is None:
        return ""
    kept = q(kept_path(path, before))
    return f"{{ [ -e {kept} ] || [ -L {kept} ] || cp -Pl {q(path)} {kept}; }} && "
