"""Whether an operator is short of processors or of bandwidth, by measurement, and what helps (spec section 2).

The criterion. Its replicas are busy for a share R/(x mu) of the time, R being the rate that they receive.
- *Compute-bound*: that share is at least `threshold`.
- *Bandwidth-bound*: it is less, and tuples are on the way that do not arrive: upstream sends clearly more than the
  replicas receive, or upstream has a backlog of over `waits_s` seconds of its rate that does not fall, although neither
  upstream nor any operator behind it is busy. A full link makes its sender wait, so the backlog is before the link and
  no processor is the reason. A busy operator holds up all that is before it, which is why those behind count.
- *None*: neither.

More replicas on the same nodes help the first and not the second, as they share the node's link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Share by which upstream has to send more than arrives: two windows never count the same tuples.
LOST = 0.05


class Bound(StrEnum):
    """The limit that an operator has reached."""

    NONE = "none"
    COMPUTE = "compute"
    BANDWIDTH = "bandwidth"


class Remedy(StrEnum):
    """The change that the paper makes for it."""

    UP = "scale up"  #: more replicas on the nodes that have some
    OUT = "scale out"  #: replicas on further nodes
    MOVE = "move"  #: the replicas of a node go to another one, on another path


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """An operator that sends to the one that is looked at."""

    busy: float | None  #: largest share of the time that it, or an operator behind it, is busy; None: not measured
    queued: float  #: tuples that wait before or in it, a source's backlog included
    rate: float  #: tuples/s that it takes, or a source emits
    queued_before: float | None = None  #: tuples that waited in the measurement before this one; None: there is none
    sent: float | None = None  #: tuples/s that it sends to this operator; None: not measured apart
    received: float = 0.0  #: tuples/s of those that arrive


def bound_of(busy: float | None, upstream: Sequence[Upstream], *, threshold: float, waits_s: float) -> Bound:
    """By the criterion of the module. `busy`: None where no service rate is measured yet, which is no bound."""
    if busy is None:
        return Bound.NONE
    if busy >= threshold:
        return Bound.COMPUTE
    return Bound.BANDWIDTH if any(_stuck(one, threshold, waits_s) for one in upstream) else Bound.NONE


def remedy_of(bound: Bound, *, stateful: bool) -> Remedy | None:
    """None if nothing limits it."""
    if bound is Bound.BANDWIDTH:
        return Remedy.MOVE if stateful else Remedy.OUT
    return Remedy.UP if bound is Bound.COMPUTE else None


def _stuck(one: Upstream, threshold: float, waits_s: float) -> bool:
    if one.sent is not None and one.received < (1 - LOST) * one.sent:
        return True
    if one.busy is None or one.busy >= threshold:
        return False
    falls = one.queued_before is not None and one.queued < one.queued_before
    return 0 < one.queued > waits_s * one.rate and not falls
