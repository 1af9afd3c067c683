"""`kernel`: numba's `njit` with code kept on disk, and dropped when any kernel's source has changed.

numba looks at the file of a function alone: it would go on using a callee's old code when only the callee's file
has changed.  So a stamp beside the compiled code names all kernel sources, and a wrong stamp clears it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
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

    Where the folder cannot be written to, numba keeps its code elsewhere and nothing happens here.
    """
    cache = folder / "__pycache__"
    stamp = source_stamp(folder)
    try:
        if (cache / STAMP).exists() and (cache / STAMP).read_text() == stamp:
            return False
        for old in (*cache.glob("kernel_*.nbi"), *cache.glob("kernel_*.nbc")):
            old.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        (cache / STAMP).write_text(stamp)
    except OSError:
        return False
    return True


clear_if_stale(HERE)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles `function` at its first call, or loads what an earlier process compiled."""
    compiled: Callable[..., Any] = numba.njit(cache=True)(function)
    return compiled
