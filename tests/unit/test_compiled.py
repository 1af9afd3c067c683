"""Compiled code is kept on disk for just the sources that it was compiled from."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import NumbaError

from leeward.policies.compiled import cache_elsewhere, clear_if_stale, compiler, source_stamp

TYPES = ("arrays.py", "tree.py")


def test_compiled_code_is_dropped_when_any_kernel_changes(tmp_path):
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for name in ("kernel_a.py", "kernel_b.py", "arrays.py", "tree.py"):
        (tmp_path / name).write_text("x = 1\n")
    assert clear_if_stale(tmp_path, TYPES)
    (cache / "kernel_a.f-1.py311.nbi").write_text("old")
    (cache / "other.nbi").write_text("not ours")
    assert not clear_if_stale(tmp_path, TYPES)
    assert (cache / "kernel_a.f-1.py311.nbi").exists()
    (tmp_path / "kernel_b.py").write_text("x = 2\n")
    assert clear_if_stale(tmp_path, TYPES)
    assert [path.name for path in cache.glob("*.nbi")] == ["other.nbi"]
    assert not clear_if_stale(tmp_path, TYPES)


def test_compiled_code_goes_to_the_users_cache_where_the_package_cannot_be_written_to(tmp_path):
    """An installation of the system's: a folder by the sources' stamp, so an upgrade never runs old code."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for name in ("arrays.py", "tree.py"):
        (tmp_path / name).touch()
    (tmp_path / "__pycache__").write_text("no folder")  # as root may write anywhere, a file stands in the way
    stamp = source_stamp(tmp_path, TYPES)[:16]
    assert cache_elsewhere(tmp_path, TYPES, environment) == tmp_path / "cache" / "leeward" / "kernels" / stamp
    (tmp_path / "__pycache__").unlink()
    assert cache_elsewhere(tmp_path, TYPES, environment) is None


def test_a_leaf_works_on_the_arrays_that_it_is_given_and_makes_none(tmp_path):
    leaf = compiler(tmp_path, leaf=True)
    total = leaf(_total)
    assert total((np.array([1.0, 2.0]), np.array([3.0]))) == 6.0
    with pytest.raises(NumbaError):
        leaf(_zeros)(3)


def _total(arrays):
    found = 0.0
    for array in arrays:
        for value in array:
            found += value
    return found


def _zeros(size):
    return np.zeros(size)
