"""Processes of this machine as /proc shows them: identity, marks, listeners, memory, and an orderly end."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from leeward.local.errors import StopError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

PROC = Path("/proc")
LISTEN = "0A"  # the state in /proc/net/tcp


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """A process that cannot be confused with a later one of the same pid."""

    pid: int
    #: ticks after boot at which it started (field 22 of /proc/<pid>/stat)
    started: int


def process_of(pid: int) -> Process | None:
    """The live process of this pid; None when there is none or it is a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None
    # a zombie whose other threads are still ending keeps its files and sockets: it is not gone yet
    gone = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if gone else Process(pid, int(fields[19]))


def is_alive(process: Process) -> bool:
    """Whether this very process runs (not one that has its pid now)."""
    return process_of(process.pid) == process


def boot_id() -> str:
    """Names the present boot: pids and start ticks mean nothing after another."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def pids() -> Iterator[int]:
    """All processes of the machine."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def command_line(pid: int) -> list[str]:
    """Arguments of a process; empty when it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def parent_of(pid: int) -> int | None:
    """Parent's pid; None when the process is gone."""
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def marked(variable: str, value: str) -> set[Process]:
    """Processes that were started with the environment entry `variable=value` (inherited ones too)."""
    entry = f"{variable}={value}".encode()
    found = set()
    for pid in pids():
        with contextlib.suppress(OSError):  # gone, or another user's
            if entry in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                process = process_of(pid)
                if process and pid != os.getpid():
                    found.add(process)
    return found


def listening(pid: int) -> set[tuple[Address, int]]:
    """Where a process accepts TCP connections: (address, port); an IPv4 address in IPv6's writing as IPv4."""
    sockets = set()
    with contextlib.suppress(OSError):  # gone, or another user's
        for link in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(link))
    found: set[tuple[Address, int]] = set()
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and f"socket:[{fields[9]}]" in sockets:
                    address, _, port = fields[1].rpartition(":")
                    found.add((_address(address), int(port, 16)))
    return found


def _address(text: str) -> Address:
    """As /proc/net/tcp has it: words of four bytes in the machine's order."""
    words = [int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address


def listeners(ports: Collection[int]) -> dict[int, int | None]:
    """The ports among these that somebody listens on, with the owner's pid (None: another user's)."""
    inodes = {}
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(FileNotFoundError):  # IPv6 may be off
            for line in (PROC / table).read_text().splitlines()[1:]:
                fields = line.split()
                port = int(fields[1].rpartition(":")[2], 16)
                if fields[3] == LISTEN and port in ports:
                    inodes[f"socket:[{fields[9]}]"] = port
    owners: dict[int, int | None] = dict.fromkeys(inodes.values())
    for pid in pids() if inodes else ():
        with contextlib.suppress(OSError):
            for link in (PROC / str(pid) / "fd").iterdir():
                with contextlib.suppress(OSError):  # a descriptor closed meanwhile hides no other
                    if (found := inodes.get(os.readlink(link))) is not None:
                        owners[found] = pid
    return owners


def started_s(pid: int) -> float:
    """When a process began, as time.time() counts; to 10 ms."""
    ticks = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)  # /proc/stat has whole seconds
    return booted + int(ticks) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Proportional set size: shared pages count by their share, so that a sum over processes is true."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def send(process: Process, number: signal.Signals) -> None:
    """Signal a process if it is still the same one."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def end_all(find: Callable[[], set[Process]], *, grace_s: float, kill_s: float = 30.0) -> int:
    """End what `find` finds, and what appears meanwhile: SIGTERM once each, SIGKILL after the grace.

    Returns how many processes were ended. Raises StopError when some live on `kill_s` after SIGKILL.
    """
    asked: set[Process] = set()
    start = time.monotonic()
    while alive := find():
        waited = time.monotonic() - start
        if waited > grace_s + kill_s:
            names = ", ".join(f"{p.pid} ({' '.join(command_line(p.pid))[:80]})" for p in sorted(alive))
            raise StopError(f"processes outlived SIGKILL: {names}.", remedy="See ps; run down again.")
        for process in alive if waited > grace_s else alive - asked:
            send(process, signal.SIGKILL if waited > grace_s else signal.SIGTERM)
        asked |= alive
        reap(alive)
        time.sleep(0.05)
    return len(asked)


def reap(processes: Collection[Process]) -> None:
    """Collect our own children among them that ended, so that none stays as a zombie."""
    for process in processes:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
