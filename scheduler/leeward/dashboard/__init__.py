"""Views of a running topology: facts in, pictures out. No decisions."""

from __future__ import annotations

from pathlib import Path

#: Folder of the files that every page has.
BASE = Path(__file__).parent / "files"
