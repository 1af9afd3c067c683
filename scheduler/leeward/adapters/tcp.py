"""TCP connections of this machine, or of the network namespace of this process, as the program `ss` tells them.

The kernel counts the bytes that the other side has acknowledged, and those that are still to be sent.
"""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

from leeward.core.errors import ConfigError

_COMMAND = ("ss", "--tcp", "--info", "--numeric", "--no-header", "--oneline", "state", "established")
_FAMILY = re.compile(r"^\[::ffff:(.*)\]$")
_ACKED, _UNSENT = re.compile(r"\bbytes_acked:(\d+)"), re.compile(r"\bnotsent:(\d+)")
_WAIT_S = 5.0


class Connection(NamedTuple):
    """One, by its two ends; addresses as IPv4, or IPv6 without brackets."""

    host: str
    port: int
    peer: str
    peer_port: int


class Counted(NamedTuple):
    """Of one direction."""

    acked: int  #: bytes that the peer has acknowledged
    unsent: int  #: bytes that wait for the network


def connections() -> dict[Connection, Counted]:
    """All that are established. Raises ConfigError without `ss`."""
    try:
        done = subprocess.run(_COMMAND, capture_output=True, text=True, timeout=_WAIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"ss: it cannot be run ({error}).", remedy="Install iproute2.") from None
    return parse(done.stdout)


def parse(text: str) -> dict[Connection, Counted]:
    """From the lines of `ss`: queue sizes, both ends, and what the kernel knows; others are left out."""
    found = {}
    for line in text.splitlines():
        words = line.split(maxsplit=4)
        if len(words) > 3 and words[0].isdigit():
            ends = (*_end(words[2]), *_end(words[3]))
            found[Connection(*ends)] = Counted(_number(_ACKED, line), _number(_UNSENT, line))
    return found


def _end(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    mapped = _FAMILY.match(host)
    return (mapped[1] if mapped else host.strip("[]")), int(port)


def _number(pattern: re.Pattern[str], line: str) -> int:
    match = pattern.search(line)
    return int(match[1]) if match else 0
