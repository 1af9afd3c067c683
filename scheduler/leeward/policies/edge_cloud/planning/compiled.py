"""`kernel` and `leaf`: the decorators of this folder's compiled functions."""

from __future__ import annotations

from pathlib import Path

from leeward.policies.compiled import compiler

#: Files of the classes that the kernels take.
TYPES = ("arrays.py",)

_HERE = Path(__file__).resolve().parent
kernel = compiler(_HERE, *TYPES)
#: Of those that make no array.
leaf = compiler(_HERE, *TYPES, leaf=True)
