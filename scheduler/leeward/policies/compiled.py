"""numba's `njit` with code kept on disk, and dropped when any source that it was compiled from has changed.

numba looks at the file of a function alone: it would go on using a callee's old code when only the callee's file
has changed.  So a stamp beside the compiled code names all sources of a folder's kernels, and a wrong stamp clears it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba

STAMP = "kernels.stamp"

Function = Callable[..., Any]


def compiler(folder: Path, *types: str, leaf: bool = False, nogil: bool = False) -> Callable[[Function], Function]:
    """The decorator for the kernels in `folder`: files `kernel_*.py`, which take the classes of the files `types`.

    A function is compiled at its first call, or loaded as an earlier process compiled it.  A `leaf` makes no array, and
    keeps no count of references to those that it is given: numba does so at each access to an array of a tuple, which
    takes many times as long as the access.  numba refuses a leaf that makes one.  With `nogil` other threads run beside
    it, so no two calls may be given the same arrays at a time.
    """
    elsewhere = cache_elsewhere(folder, types)
    # numba names no public option for this; its own helpers are compiled so
    options = ({"_nrt": False} if leaf else {}) | ({"nogil": True} if nogil else {})

    def kernel(function: Function) -> Function:
        if elsewhere is not None:
            numba.config.CACHE_DIR = str(elsewhere)  # read by njit, here
        compiled: Function = numba.njit(cache=True, **options)(function)
        return compiled

    return kernel


def source_stamp(folder: Path, types: Sequence[str]) -> str:
    """A digest of every kernel, the files of the types that they take, and numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted([*folder.glob("kernel_*.py"), *(folder / name for name in types)]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def clear_if_stale(folder: Path, types: Sequence[str]) -> bool:
    """Removes compiled kernels of other sources; returns whether there was anything to do.

    Raises OSError where the folder cannot be written to.
    """
    cache = folder / "__pycache__"
    stamp = source_stamp(folder, types)
    if (cache / STAMP).exists() and (cache / STAMP).read_text() == stamp:
        return False
    for old in (*cache.glob("kernel_*.nbi"), *cache.glob("kernel_*.nbc")):
        old.unlink(missing_ok=True)
    cache.mkdir(exist_ok=True)
    (cache / STAMP).write_text(stamp)
    return True


def cache_elsewhere(folder: Path, types: Sequence[str], environment: Mapping[str, str] = os.environ) -> Path | None:
    """The user's folder for the code of just these sources, where the package's own cannot be written to; else None."""
    try:
        clear_if_stale(folder, types)
    except OSError:
        base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
        return Path(base, "leeward", "kernels", source_stamp(folder, types)[:16])
    return None
