"""Before a cluster starts: is every port free, does the host name resolve, is the run folder ours?"""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from leeward.local import processes
from leeward.local.errors import FolderError, NotInstalledError, PortsTakenError
from leeward.local.layout import RELAY
from leeward.local.places import make_folder
from leeward.local.record import read_record, record_path

#: file that marks a folder as a run folder, whose content the next start may remove
OWNED = ".leeward-cluster"


def check_free(purposes: dict[int, str], remedy: str = "End it.") -> None:
    """Raise PortsTakenError naming each taken port, its use, and the process that holds it."""
    taken = processes.listeners(purposes.keys())
    if taken:
        lines = [f"port {p} ({purposes[p]}) is taken by {describe(taken[p])}" for p in sorted(taken)]
        raise PortsTakenError("; ".join(lines) + ".", remedy=remedy)


def describe(pid: int | None) -> str:
    """A process for an error text."""
    if pid is None:
        return "another user's process"
    command = " ".join(processes.command_line(pid))
    return f"pid {pid} ({command if len(command) < 100 else command[:60] + ' ... ' + command[-36:]})"


def check_host_name() -> None:
    """Nimbus asks for this machine's own name and dies when it does not resolve. Raises NotInstalledError."""
    name = socket.gethostname()
    try:
        socket.gethostbyname(name)
    except OSError as error:
        raise NotInstalledError(
            f"host name: {name!r} does not resolve ({error}).",
            remedy=f"Add `127.0.1.1 {name}` to /etc/hosts.",
        ) from error


def claim_folder(folder: Path) -> None:
    """Make the run folder ours. Raises FolderError if a cluster runs there or it holds other files."""
    refuse_running(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / OWNED).exists():
        raise FolderError(f"dir: {folder} holds other files.", remedy="Give an empty or new folder.")
    make_folder(folder)
    folder.chmod(0o700)  # passwords and topologies' configurations are in there
    (folder / OWNED).touch()


def refuse_running(folder: Path) -> None:
    """Raises FolderError if a cluster runs in this run folder.

    A cluster whose relay is gone has crashed: no node reaches another.
    """
    if record_path(folder).exists():
        record = read_record(folder)
        alive = [n for n, process in record.daemons.items() if processes.is_alive(process)]
        if alive and (RELAY in alive or not record.spec.emulated):
            raise FolderError(
                f"dir: a cluster runs in {folder} ({', '.join(alive)}).",
                remedy=f"End it (leeward cluster down --dir {folder}) or give another folder and --base-port.",
            )


def empty_folder(folder: Path) -> None:
    """Remove a run folder's content but for the file that marks it."""
    for entry in folder.iterdir():
        if entry.name != OWNED:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
