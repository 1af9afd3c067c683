"""Runs of an experiment that are over, in a folder, so that a run that was broken off goes on where it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

from leeward import __version__


class Measured(Protocol):
    """The figures of one run."""

    @property
    def key(self) -> tuple[str, ...]:
        """By which it is found."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""


One = TypeVar("One", bound=Measured)


class Kept(Generic[One]):
    """`runs`: by key. `of`: settings that the runs were made with; those made with others, or version, do not count.

    `read` makes a run from its document; it raises TypeError for one of another form.
    """

    def __init__(self, folder: Path, of: object, read: Callable[[Mapping[str, Any]], One]) -> None:
        self._folder, self._of = folder, json.dumps([__version__, repr(of)])
        self.runs: dict[tuple[str, ...], One] = {}
        for file in sorted(folder.glob("*.json")):
            with suppress(OSError, ValueError, KeyError, TypeError):
                document = json.loads(file.read_text())
                if document["of"] == self._of:
                    one = read(document["run"])
                    self.runs[one.key] = one

    def add(self, one: One) -> None:
        """Written at once, whole or not at all."""
        self.runs[one.key] = one
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = f"{crc32(self._of.encode()):08x}"  # runs of others may be in the folder
        file = self._folder / f"{'-'.join((*one.key, settings)).replace(' ', '_')}.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"of": self._of, "run": one.document()}))
        new.replace(file)

    def end(self) -> None:
        """Forget them all."""
        shutil.rmtree(self._folder, ignore_errors=True)
