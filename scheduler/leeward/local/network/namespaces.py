"""Makes and removes the namespaces and devices of an emulated network, with `ip`; and says why that cannot be done."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from leeward.local import native
from leeward.local.errors import NotInstalledError, PortsTakenError, StartError, StopError
from leeward.local.network.plan import NAMESPACES, End, prefix_of, set_up

TUN = Path("/dev/net/tun")
#: program -> the package of Debian that has it
PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
}
DEVICES = Path("/sys/class/net")
IPV6 = Path("/proc/sys/net/ipv6")
#: `ip` is where users' shells do not look.
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
_WAIT_S = 30.0


def hindrance() -> str | None:
    """Why this process cannot emulate a network; None if it can."""
    if os.geteuid() != 0:
        return "it needs root"
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=SEARCH) is None:
            return f"it needs the program {program} (package {package})"
    if native.compiler() is None:
        return "it needs a C compiler (run `make setup`)"
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        return f"{TUN} cannot be opened ({error.strerror})"
    done = _run("unshare", "--net", "--mount", "--uts", "true")
    if done.returncode != 0:
        return f"this machine allows no namespaces ({done.stderr.strip()})"
    return None


def check_possible() -> None:
    """Raise NotInstalledError if the network cannot be emulated here."""
    why = hindrance()
    if why:
        raise NotInstalledError(f"network: it cannot be emulated here: {why}.", remedy="Or start it without --network.")


def check_subnet(ends: Iterable[End]) -> None:
    """Raise PortsTakenError if an interface of this machine has an address in the network's subnet."""
    subnet = ipaddress.ip_network(f"{next(iter(ends)).address}/24", strict=False)
    for device in json.loads(_ip("-j", "-4", "addr", "show")):
        for entry in device.get("addr_info", ()):
            if ipaddress.ip_address(entry["local"]) in subnet:
                alias = DEVICES / device["ifname"] / "ifalias"
                owner = alias.read_text().strip() if alias.exists() else ""
                whose = f", of the cluster in {owner}" if owner else ""
                end = f"End it (leeward cluster down --dir {owner}), or give" if owner else "Give"
                raise PortsTakenError(
                    f"network: the subnet {subnet} is that of interface {device['ifname']}{whose}.",
                    remedy=f"{end} another --base-port.",
                )


def create(folder: Path, ends: Iterable[End], mtu: int) -> None:
    """Make namespaces, devices and addresses of a run folder. Raises StartError with what `ip` says."""
    for end in ends:
        where = ["-n", end.namespace] if end.namespace else []
        if end.namespace:
            _ip("netns", "add", end.namespace)
        _ip(*where, "-batch", "-", text=set_up(end, mtu, ipv6=IPV6.exists()))
        if not end.namespace:
            _ip("link", "set", "dev", end.device, "alias", str(folder)[:250])


def remove(folder: Path) -> list[str]:
    """Remove all namespaces and devices of a run folder, also after a crash; their names.

    No process of the cluster may run any more. Raises StopError if `ip` cannot.
    """
    found = left(folder)
    try:
        for name in found:
            if (NAMESPACES / name).exists():
                _ip("netns", "del", name)
            else:
                _ip("link", "del", "dev", name)
    except StartError as error:
        raise StopError(error.message, remedy="Run down again, as root.") from None
    return found


def left(folder: Path) -> list[str]:
    """Names of the namespaces and devices of a run folder."""
    prefix = prefix_of(folder)
    spaces = sorted(path.name for path in NAMESPACES.glob(f"{prefix}-*"))
    return spaces + ([prefix] if (DEVICES / prefix).exists() else [])


def _ip(*arguments: str, text: str = "") -> str:
    done = _run("ip", *arguments, text=text)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise StartError(f"network: ip {' '.join(arguments)}: {lines[0]}.", remedy="See docs/operations.md.")
    return done.stdout


def _run(program: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    path = shutil.which(program, path=SEARCH) or program
    return subprocess.run([path, *arguments], input=text, capture_output=True, text=True, timeout=_WAIT_S)
