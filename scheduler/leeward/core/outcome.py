"""How a reconfiguration or a request ended: a code, and why in words for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from leeward.core.errors import ProtocolError


class Ending(StrEnum):
    """The code of an outcome."""

    DONE = "done"  #: carried out
    ABORTED = "aborted"  #: given up before anything changed
    UNDONE = "undone"  #: taken back: the old places and tables are in force again
    RESET = "reset"  #: state was lost meanwhile: the topology went back to a checkpoint
    REFUSED = "refused"  #: the request cannot be carried out as it stands


@dataclass(frozen=True, slots=True)
class Outcome:
    """See the module."""

    ending: Ending
    why: str = ""  #: empty if it was done

    def __str__(self) -> str:
        return f"{self.ending}: {self.why}" if self.why else str(self.ending)

    def to_json(self) -> str:
        """Compact JSON."""
        return json.dumps({"ending": str(self.ending), "why": self.why}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Outcome:
        """Raises ProtocolError if the text is no outcome."""
        try:
            document = json.loads(text)
            return Outcome(Ending(document["ending"]), str(document["why"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ProtocolError(f"not an outcome: {error!r}.", remedy="Only the coordinator writes it.") from None


DONE = Outcome(Ending.DONE)


def aborted(why: str) -> Outcome:
    """Given up for this reason."""
    return Outcome(Ending.ABORTED, why)


def refused(why: str) -> Outcome:
    """A request that cannot be carried out for this reason."""
    return Outcome(Ending.REFUSED, why)
