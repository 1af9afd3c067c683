"""Warnings of a topology's measurements: each is told once, and again when there is more of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leeward.control.clocks import REMEDY
from leeward.control.clocks import told as clocks_told
from leeward.core.outside import warning

Emit = Callable[[str, Mapping[str, object]], None]


class Warned:
    """Remembers the warnings that were told. `emit` takes an action and its fields."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._outside: dict[str, tuple[str, ...]] = {}
        self._clocks: Mapping[str, float] = {}

    def outside(self, found: Mapping[str, tuple[str, ...]]) -> None:
        """Components that keep state outside of `self.state`, with its attributes."""
        for name, attributes in found.items():
            if self._outside.get(name) != attributes:
                self._outside[name] = attributes
                why, remedy = warning(name, attributes)
                fields = {"component": name, "attributes": list(attributes), "why": why, "remedy": remedy}
                self._emit("state_outside", fields)

    def clocks(self, off: Mapping[str, float]) -> None:
        """Nodes whose clocks are off, s; told when they are other nodes than before."""
        if off.keys() != self._clocks.keys():
            self._emit("clocks_off", {"nodes": off, "why": clocks_told(off), "remedy": REMEDY if off else ""})
        self._clocks = off
