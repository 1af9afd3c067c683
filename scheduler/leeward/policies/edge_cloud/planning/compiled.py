"""`kernel`: the decorator of this folder's compiled functions."""

from __future__ import annotations

from pathlib import Path

from leeward.policies.compiled import compiler

#: Files of the classes that the kernels take.
TYPES = ("arrays.py",)

kernel = compiler(Path(__file__).resolve().parent, *TYPES)
