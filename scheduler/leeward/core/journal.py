"""The coordinator's journal: each step, written before it is taken.

One document in ZooKeeper (`Paths.journal`), kept for the topology's life: a closed journal still remembers the
highest cut number used, so that a number is never used twice. A coordinator that starts reads journal and control
record, and knows from both where the one before it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from leeward.core.errors import ProtocolError
from leeward.core.outcome import Ending, Outcome
from leeward.core.plan import Slot
from leeward.core.table import Table
from leeward.core.versions import refuse_newer

JOURNAL_VERSION = 7
_BY_COMPONENT = ("old_tables", "new_tables", "step_tables", "order")


class StepName(StrEnum):
    """The step that the coordinator was about to take."""

    ANNOUNCE = "announce"  #: fence, then PAUSE
    MOVE = "move"  #: barrier 1 was reached: MOVE, placement, rebalance
    UNDO = "undo"  #: the new placement cannot be had: back to the old one
    RESTORE = "restore"  #: fence, then RESTORE
    AHEAD = "ahead"  #: state that will change hands is to be copied while all goes on
    HANDOVER = "handover"  #: RUN with new tables, then fence
    LEAVE = "leave"  #: warm tasks are to be absent
    PREPARE = "prepare"  #: they are: Storm takes them where they are wanted
    JOIN = "join"  #: they are there, and to take part again
    HELD = "held"  #: no cut can be read
    CLOSED = "closed"  #: nothing is in progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """See the module. Times are seconds of the coordinator's clock."""

    #: "restart", "handover" (a plan's), "reset" (state was lost), "rejoin" (tasks are left out, or return)
    kind: str = ""
    step: StepName = StepName.CLOSED
    epoch: int = 0  #: newest epoch that this reconfiguration has used, or is about to use
    cut: int = 0  #: cut that it exports, or (reset) restores from
    last_cut: int = 0  #: highest cut number ever used
    old_cut: int = 0  #: cut of the base before
    old_handover: int = 0  #: newest handover before; of a handover in steps: before the present step
    old_tables: Mapping[str, Table] = field(default_factory=dict)  #: in force before
    new_tables: Mapping[str, Table] = field(default_factory=dict)  #: wanted
    steps: int = 0  #: handover: steps that every task has passed
    step_tables: Mapping[str, Table] = field(default_factory=dict)  #: after those steps, if there were any
    order: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  #: handover: component -> groups as they move
    old_slots: Mapping[int, Slot] = field(default_factory=dict)  #: task -> slot before, as Storm had it
    new_slots: Mapping[int, Slot] = field(default_factory=dict)  #: task -> slot wanted
    placement_epoch: int = 0  #: epoch that the placement was written under; 0: not written by this one
    unreadable: Mapping[int, str] = field(default_factory=dict)  #: reset: cut -> why it cannot be read
    exported: int = 0  #: bytes of state in the cut, or (handover) that changed hands
    waited: float = 0.0  #: handover: longest time that a tuple waited for its group, in seconds
    reason: str = ""  #: why it was started
    request: str = ""  #: id of the request that it carries out; closing the journal answers the requester
    result: Outcome | None = None  #: how it ended, or is to end
    times: Mapping[str, float] = field(default_factory=dict)  #: step -> when it was first taken
    version: int = JOURNAL_VERSION

    @property
    def open(self) -> bool:
        """Something is in progress."""
        return self.step is not StepName.CLOSED

    @property
    def answers(self) -> bool:
        """It is closed, and names a request to answer."""
        return bool(self.request) and not self.open

    @property
    def undone_tables(self) -> Mapping[str, Table]:
        """Tables in force again when it is aborted: there is no way back behind a step."""
        return self.step_tables if self.steps else self.old_tables

    @property
    def moves(self) -> bool:
        """Some task has to change its slot."""
        return any(self.old_slots.get(task) != slot for task, slot in self.new_slots.items())

    def at(self, step: StepName, now: float, **changes: Any) -> Journal:
        """The same journal at another step, first reached at `now`; not before the step that was reached last, as the
        clock of a coordinator that takes over may be behind."""
        reached = max([now, *self.times.values()])
        return replace(self, step=step, times={str(step): reached, **self.times}, **changes)

    def to_json(self) -> str:
        """Compact JSON; equal journals give equal text."""
        document: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        for name in _BY_COMPONENT:
            document[name] = {key: list(table) for key, table in sorted(getattr(self, name).items())}
        for name in ("old_slots", "new_slots"):
            document[name] = [[task, slot.node, slot.port] for task, slot in sorted(getattr(self, name).items())]
        document["result"] = self.result and {"ending": str(self.result.ending), "why": self.result.why}
        document["times"] = dict(sorted(self.times.items()))
        document["unreadable"] = {str(cut): why for cut, why in sorted(self.unreadable.items())}
        return json.dumps(document, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Journal:
        """Raises ProtocolError if the text is no journal or of a newer version."""
        try:
            document = json.loads(text)
            refuse_newer("journal", document["version"], JOURNAL_VERSION, writer="coordinator")
            document["step"] = StepName(document["step"])
            document["result"] = _result(document.get("result"))
            for name in _BY_COMPONENT:
                document[name] = {key: tuple(table) for key, table in document.get(name, {}).items()}
            for name in ("old_slots", "new_slots"):
                document[name] = {task: Slot(node, port) for task, node, port in document[name]}
            document["unreadable"] = {int(cut): why for cut, why in document.get("unreadable", {}).items()}
            return Journal(**document)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a journal: {error!r}.", remedy="Only the coordinator writes it.") from None


def _result(value: object) -> Outcome | None:
    """None of a journal that has none; a journal of version 6 and before has a text."""
    if isinstance(value, str):
        ending, _, why = value.partition(": ")
        return Outcome(Ending(ending), why) if value else None
    return None if value is None else Outcome(Ending(value["ending"]), value["why"])  # type: ignore[index]
