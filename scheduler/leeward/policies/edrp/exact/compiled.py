"""`kernel`: the decorator of this folder's compiled functions; `leaf`: of those of them that make no array."""

from __future__ import annotations

from pathlib import Path

from leeward.policies.compiled import compiler

#: Files of the classes that the kernels take, and this one, as code is compiled anew when the options change.
TYPES = ("arrays.py", "tree.py", "compiled.py")

#: A search takes seconds, and each has arrays of its own: the service of other topologies goes on meanwhile.
kernel = compiler(Path(__file__).resolve().parent, *TYPES, nogil=True)
leaf = compiler(Path(__file__).resolve().parent, *TYPES, leaf=True, nogil=True)
