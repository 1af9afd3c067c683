"""`kernel`: numba's `njit` with code kept on disk, and dropped when any kernel's source has changed.

numba looks at the file of a function alone: it would go on using a callee's old code when only the callee's file
has changed.  So a stamp beside the compiled code names all kernel sources, and a wrong stamp clears it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba

HERE = Path(__file__).resolve().parent
STAMP = "kernels.stamp"


def source_stamp(folder: Path) -> str:
    """A digest of what the compiled code depends on: every kernel, what types they take, numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted([*folder.glob("kernel_*.py"), folder / "arrays.py", folder / "tree.py"]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def clear_if_stale(folder: Path) -> bool:
    """Removes compiled kernels of other sources; returns whether there was anything to do.

    Raises OSError where the folder cannot be written to.
    """
    cache = folder / "__pycache__"
    stamp = source_stamp(folder)
    if (cache / STAMP).exists() and (cache / STAMP).read_text() == stamp:
        return False
    for old in (*cache.glob("kernel_*.nbi"), *cache.glob("kernel_*.nbc")):
        old.unlink(missing_ok=True)
    cache.mkdir(exist_ok=True)
    (cache / STAMP).write_text(stamp)
    return True


def cache_elsewhere(folder: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The user's folder for the code of just these sources, where the package's own cannot be written to; else None."""
    try:
        clear_if_stale(folder)
    except OSError:
        base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
        return Path(base, "leeward", "kernels", source_stamp(folder)[:16])
    return None


if (_elsewhere := cache_elsewhere(HERE)) is not None:
    numba.config.CACHE_DIR = str(_elsewhere)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles `function` at its first call, or loads what an earlier process compiled."""
    compiled: Callable[..., Any] = numba.njit(cache=True)(function)
    return compiled
