"""`runtime.ports.UserCode` of a component in a worker: its hooks reach tasks that are replicas, or have been.

A task that has never been a replica gets no call but `initialize`; `resumed` and `activate` wait until it becomes one.
A task that was a replica may still hold output that a checkpoint makes final, so it gets `before_checkpoint` and
`committed`, and `resumed` when its state is replaced. Ticks and `next_tuple` reach replicas only (`components.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from leeward.core.instructions import Deliver, DeliverPulse, Mode
from leeward.core.outside import REMEDY, kept_outside
from leeward.core.protocol import TaskProtocol
from leeward.runtime.state.keyed import Entries
from leeward.runtime.state.outside import Outside


class Component(Protocol):
    """The part of `elastic.Elastic` that is called here."""

    component_name: str
    logger: logging.Logger

    def resumed(self) -> None: ...

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None: ...

    def before_checkpoint(self, cut: int) -> None: ...

    def _durable(self, cut: int, state: Entries | None) -> None: ...

    def _deliver(self, instruction: Deliver) -> None: ...

    def _deliver_pulse(self, instruction: DeliverPulse) -> None: ...

    def _drop_emits(self, drop: bool) -> None: ...

    def _state_replaced(self) -> None: ...


class UserCode:
    """An object of its own, so that its methods meet no names of the user's."""

    def __init__(self, component: Component, protocol: TaskProtocol, started: Callable[[], None]) -> None:
        self._component, self._protocol, self.started = component, protocol, started
        self._worked = False  # it is a replica, or was one
        self._resume = False  # resumed() waits
        self._activation = ""  # "activate" or "deactivate" waits
        self._outside: Outside | None = None
        self._told = False
        component._drop_emits(True)

    def watch(self, outside: Outside | None) -> None:
        """The attributes of a component that keeps state; before user code is called."""
        self._outside = outside

    def outside(self, tuples: int) -> tuple[str, ...]:
        """Attributes outside of `self.state` that so many tuples have changed; any thread may ask."""
        if self._outside is None or not tuples:
            return ()
        found, component = self._outside.look(), self._component
        if found and not self._told:
            self._told = True
            component.logger.warning("%s %s", kept_outside(component.component_name, found), REMEDY)
        return found

    @property
    def works(self) -> bool:
        """The task is a replica."""
        return self._protocol.works

    def changing(self) -> None:
        """The protocol has decided something, which is about to be carried out."""
        if not self.works:
            return
        self._worked = True
        self._component._drop_emits(False)
        if self._activation:
            name, self._activation = self._activation, ""
            getattr(self._component, name)()
        if self._resume and self._protocol.mode is Mode.RUNNING:
            self.resumed()

    def changed(self) -> None:
        """It is carried out. Not earlier: tuples from before the change were processed meanwhile."""
        if not self.works:
            self._component._drop_emits(True)

    def activation(self, name: str) -> None:
        """Storm says "activate" or "deactivate"."""
        self._activation = name
        if self.works:
            self.changing()

    def deliver(self, instruction: Deliver) -> None:
        self._component._deliver(instruction)

    def deliver_pulse(self, instruction: DeliverPulse) -> None:
        self._component._deliver_pulse(instruction)

    def resumed(self) -> None:
        self._component._state_replaced()
        self._resume = not self._worked
        if self._worked:
            self._component.resumed()
            if self._outside is not None:
                self._outside.begin()

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None:
        self._component.regrouped(gained, lost)

    def before_checkpoint(self, cut: int) -> None:
        if self._worked:
            self._component.before_checkpoint(cut)

    def durable(self, cut: int, state: Entries | None) -> None:
        if self._worked:
            self._component._durable(cut, state)
