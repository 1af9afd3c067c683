"""`kernel`: the decorator of this folder's compiled functions."""

from __future__ import annotations

from pathlib import Path

from leeward.policies.compiled import compiler

kernel = compiler(Path(__file__).resolve().parent)
