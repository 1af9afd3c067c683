"""Errors of the control side that are not already in `leeward.core.errors`."""

from __future__ import annotations

from leeward.core.errors import LeewardError


class LostLeadershipError(LeewardError):
    """Another coordinator has claimed this topology: this one must stop at once."""


class TopologyGoneError(LeewardError):
    """Nimbus no longer runs the topology: there is nothing to lead."""
