"""A reconfiguration as spans, as tracing has them: one for the whole, one below it for each phase. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leeward.control.report.values import Reconfiguration

#: Ending of a reconfiguration that was carried out.
DONE = "done"


#: Names of attributes begin so, as OpenTelemetry asks of those that it does not define.
OURS = "leeward."


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A named stretch of time, s since 1970."""

    name: str
    begun: float
    ended: float
    attributes: Mapping[str, str | int | float]
    failed: str = ""  #: why it did not come about; empty: it did


def spans_of(topology: str, entry: Reconfiguration) -> tuple[Span, tuple[Span, ...]]:
    """The reconfiguration, and its phases in their order, the last of which ends with it.

    Phases follow each other, so each begins where the one before it ends.
    """
    ended = entry.ended or 0.0
    about: dict[str, str | int | float] = {
        f"{OURS}topology": topology, f"{OURS}kind": entry.kind, f"{OURS}result": entry.ending,
        f"{OURS}epoch": entry.epoch,
    }  # fmt: skip
    phases = []
    at = begun = ended - sum(entry.phases.values())
    for name, seconds in entry.phases.items():
        end = min(at + seconds, ended)  # a sum of floats may be a little more than the whole
        phases.append(Span(name=name, begun=at, ended=end, attributes={f"{OURS}phase": name, **about}))
        at = end
    whole = about | {
        f"{OURS}reason": entry.reason, f"{OURS}pause_s": entry.pause_s, f"{OURS}bytes_moved": entry.bytes_moved,
        f"{OURS}components": ", ".join(change.component for change in entry.changes),
    }  # fmt: skip
    first = min(begun, entry.begun if entry.begun is not None else begun)
    failed = "" if entry.ending == DONE else entry.result or entry.ending
    return Span(name="reconfiguration", begun=first, ended=ended, attributes=whole, failed=failed), tuple(phases)
