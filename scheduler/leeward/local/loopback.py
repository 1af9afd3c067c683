"""Keeps the daemons and workers of a local cluster to loopback addresses, by a small C library.

Storm has no setting for the address on which Nimbus' Thrift server, the supervisors' and the workers' Netty server
listen: they listen on every address of the machine. `loopback.c` binds such a socket to a loopback address instead.
The dynamic linker loads it into the daemons (LD_PRELOAD), and workers and Python tasks inherit it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from leeward.local import native
from leeward.local.errors import NotInstalledError

#: Environment variable with the address for the library.
ADDRESS_VARIABLE = "LEEWARD_LISTEN"
ANYWAY = "Or pass --any-address: then Nimbus, supervisors and workers listen on every address of this machine."
_SOURCE = files("leeward.local").joinpath("loopback.c")


def library(kept: Path) -> Path:
    """The compiled library, made once for each version of its source. Raises NotInstalledError without a compiler."""
    target = kept / "native" / "loopback.so"
    if any(character.isspace() or character == ":" for character in str(target)):
        raise NotInstalledError(
            f"loopback library: the path {str(target)!r} has a blank or a colon, where LD_PRELOAD ends a name.",
            remedy=f"Move that folder. {ANYWAY}",
        )
    return native.built(
        _SOURCE.read_bytes(),
        target,
        ["-shared", "-fPIC", "-ldl"],
        name="loopback library",
        without=", so the local cluster cannot be kept to loopback addresses",
        anyway=ANYWAY,
    )


def environment(preload: Path, address: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Entries that keep a process and its children to this address; libraries that were preloaded before stay."""
    present = inherited.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{preload}:{present}" if present else str(preload), ADDRESS_VARIABLE: address}
