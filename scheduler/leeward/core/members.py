"""Organisations that decide together by messages, without a centre, each in a process of its own.

A member is a pure state machine: messages and time in, messages and effects out.  Shells deliver the messages and carry
out the effects: over WebSocket (`adapters/organisations/`), or within one process in experiments and tests.  A message
may be lost, and messages to different members may overtake each other, so a protocol needs deadlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, Protocol


class To(NamedTuple):
    """A message to a member by its name, the sender itself included."""

    name: str
    message: Any


class ToAll(NamedTuple):
    """The same message to several other members: a shell packs it once."""

    names: tuple[str, ...]
    message: Any


class Member(Protocol):
    """One organisation's part. Reads no clock and draws from `rng` alone; `now` in seconds, never going back.

    Both methods return messages (`To`, `ToAll`) and effects. An effect is any other value: the shell gives it to the
    wiring, which knows what it asks for (start a subtask, answer a client).
    """

    name: str

    def receive(self, sender: str, message: Any, now: float, rng: Random) -> Sequence[Any]:
        """Take one message in; messages and effects that follow from it."""

    def tick(self, now: float, rng: Random) -> Sequence[Any]:
        """Time has passed."""
