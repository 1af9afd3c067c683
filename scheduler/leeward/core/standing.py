"""Decisions of people about one topology that hold on, and the plan that waits for one. It outlives a leader.

The leader alone writes it, at `<root>/topologies/<topology id>/standing`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.errors import ProtocolError
from leeward.core.plan import Slot
from leeward.core.table import Table
from leeward.core.versions import refuse_newer

STANDING_VERSION = 2

Deployment = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan that has passed the guards and waits for approval."""

    number: int  #: of this topology's proposals, from 1
    epoch: int  #: in force when it was made; it holds in no other
    made_at: float  #: s since 1970
    reason: str  #: the policy's
    before: Deployment  #: component -> node -> replicas when it was made
    after: Deployment  #: the same as proposed
    tables: Mapping[str, Table]
    slots: Mapping[int, Slot]
    gain: float | None = None  #: of the policy's objective, where it has one
    cost_per_h: float | None = None  #: $/h, where the policy says so
    cost_now_per_h: float | None = None  #: the same of the deployment in force when it was made
    downtime_s: float | None = None  #: of carrying it out, where the policy says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """See the module."""

    frozen: bool = False  #: nothing is carried out but recovery from losses
    why: str = ""  #: it is frozen, in a person's words
    since: float = 0.0  #: it is frozen, s since 1970
    proposals: int = 0  #: made so far
    proposal: Proposal | None = None  #: the one that waits
    before: Deployment = field(default_factory=dict)  #: in force before the last reconfiguration; empty: not known
    freeze_by: str = ""  #: request after whose reconfiguration it is frozen, if that is carried out
    freeze_why: str = ""  #: for this reason
    version: int = STANDING_VERSION
    unreadable: bool = False  #: the document is another release's, or damaged; of no document

    @staticmethod
    def unread(reason: str) -> Standing:
        """In place of a document that cannot be read: a freeze may stand in it, so there is one."""
        remedy = "Start the release that wrote them, or undo this freeze, which writes them anew"
        return Standing(frozen=True, why=f"its decisions cannot be read: {reason} {remedy}", unreadable=True)

    def to_json(self) -> str:
        """Compact JSON; equal ones give equal text."""
        document: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name != "unreadable"}
        document["proposal"] = self.proposal and _proposal_document(self.proposal)
        return json.dumps(document, separators=(",", ":"), default=dict)

    @staticmethod
    def from_json(text: str | bytes) -> Standing:
        """Raises ProtocolError if the text is none, or of a newer version."""
        try:
            document = json.loads(text)
            refuse_newer("standing", document["version"], STANDING_VERSION, writer="service")
            if document["proposal"] is not None:
                document["proposal"] = _proposal(document["proposal"])
            return Standing(**document | {"version": STANDING_VERSION})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a standing: {error!r}.", remedy="Only the service writes it.") from None


def _proposal_document(proposal: Proposal) -> dict[str, Any]:
    document: dict[str, Any] = {name: getattr(proposal, name) for name in Proposal.__slots__}
    document["tables"] = {name: list(table) for name, table in sorted(proposal.tables.items())}
    if proposal.cost_now_per_h is None:  # a release that does not know the key reads the document without it
        del document["cost_now_per_h"]
    document["slots"] = [[task, slot.node, slot.port] for task, slot in sorted(proposal.slots.items())]
    return document


def _proposal(document: dict[str, Any]) -> Proposal:
    tables = {name: tuple(table) for name, table in document.pop("tables").items()}
    slots = {task: Slot(node, port) for task, node, port in document.pop("slots")}
    return Proposal(tables=tables, slots=slots, **document)
