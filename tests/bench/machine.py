"""What a benchmark tells of the machine below it, and how long its idle processors look for work before they halt."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Linux: Documentation/virt/guest-halt-polling.rst
HALT_POLL = Path("/sys/module/haltpoll/parameters/guest_halt_poll_ns")
_LONGEST_US = 10_000


def stolen_s(stat: Path = Path("/proc/stat")) -> float:
    """Seconds for which the host of this machine has kept its processors from it, all together, since its start."""
    return int(stat.read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def facts() -> dict[str, Any]:
    """What results depend on; `halt_poll_us` is None where the processors' idle loop has no such setting."""
    polling = int(HALT_POLL.read_text()) // 1000 if HALT_POLL.exists() else None
    memory_gb = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {
        "cores": os.cpu_count(), "memory_gb": memory_gb, "system": platform.platform(), "halt_poll_us": polling,
    }  # fmt: skip


def add_halt_poll_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--halt-poll-us", type=_microseconds, metavar="US",
        help="on a virtual machine whose idle processors halt at once, and wait for their host at each tuple: let them "
        "look for work so long first, 1000 for example; needs root, and is put back at the end",
    )  # fmt: skip


@contextmanager
def halt_polling(us: int | None, setting: Path = HALT_POLL) -> Iterator[None]:
    """Within it, idle processors poll for `us` microseconds before they halt; None leaves them as they are.

    A processor of a virtual machine that halts is the host's, and comes back when the host finds one free: on one
    machine that took up to a tenth of the time of a stream of 1,000 tuples/s, though nobody else wanted much.
    """
    if us is None:
        yield
        return
    before = setting.read_text()
    setting.write_text(str(us * 1000))
    try:
        yield
    finally:
        setting.write_text(before)


def _microseconds(text: str) -> int:
    if not text.isdecimal() or not int(text) <= _LONGEST_US:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number of microseconds is wanted, at most {_LONGEST_US}")
    if not os.access(HALT_POLL, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"{HALT_POLL} cannot be written: this wants root, and a Linux guest whose idle driver is haltpoll. "
            "Without the option the benchmark measures the machine as it is."
        )
    return int(text)
