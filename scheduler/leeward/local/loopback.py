"""Keeps the daemons and workers of a local cluster to loopback addresses, by a small C library.

Storm has no setting for the address on which Nimbus' Thrift server, the supervisors' and the workers' Netty server
listen: they listen on every address of the machine. `loopback.c` binds such a socket to a loopback address instead.
The dynamic linker loads it into the daemons (LD_PRELOAD), and workers and Python tasks inherit it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from leeward.local.errors import NotInstalledError

#: Environment variable that tells the library the address.
ADDRESS_VARIABLE = "LEEWARD_LISTEN"
ANYWAY = "Or pass --any-address: then Nimbus, supervisors and workers listen on every address of this machine."
_SOURCE = files("leeward.local").joinpath("loopback.c")
_COMPILE_S = 60.0


def library(checkout: Path) -> Path:
    """The compiled library, made once for each version of its source. Raises NotInstalledError without a compiler."""
    source = _SOURCE.read_bytes()
    target = checkout / "build" / "native" / f"loopback-{hashlib.sha256(source).hexdigest()[:12]}.so"
    if any(character.isspace() or character == ":" for character in str(target)):
        raise NotInstalledError(
            f"loopback library: the path {str(target)!r} has a blank or a colon, where LD_PRELOAD ends a name.",
            remedy=f"Move the checkout. {ANYWAY}",
        )
    if not target.exists():
        _compile(source, target)
    return target


def _compile(source: bytes, target: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotInstalledError(
            "C compiler: neither cc nor gcc is on PATH, so the local cluster cannot be kept to loopback addresses.",
            remedy=f"Run `make setup`, or install gcc and libc6-dev. {ANYWAY}",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}")
    command = [compiler, "-x", "c", "-", "-o", str(part), "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-ldl"]
    done = subprocess.run(command, input=source, capture_output=True, timeout=_COMPILE_S)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        raise NotInstalledError(
            f"loopback library: {compiler} failed: {lines[0] if lines else f'exit code {done.returncode}'}.",
            remedy=f"Install gcc and libc6-dev. {ANYWAY}",
        )
    part.replace(target)


def environment(preload: Path, address: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Entries that keep a process and its children to this address; libraries that were preloaded before stay."""
    present = inherited.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{preload}:{present}" if present else str(preload), ADDRESS_VARIABLE: address}
