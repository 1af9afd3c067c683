"""Errors with field, value and remedy."""

from __future__ import annotations


class LeewardError(Exception):
    """Base of all errors that Leeward raises on purpose; its text ends with the remedy."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".rstrip())
        self.message = message
        self.remedy = remedy


class ConfigError(LeewardError):
    """A setting is unknown, missing or of the wrong type."""


class PlanError(LeewardError):
    """A plan or a placement does not describe what it should (unknown node, task twice, over capacity)."""


class KeyTypeError(LeewardError, TypeError):
    """A routing or state key is neither str nor int, nor a tuple of these."""


class ProtocolError(LeewardError):
    """A task or the coordinator met something that the protocol forbids."""


class NotOwnedError(ProtocolError):
    """State was asked for a key whose group this task does not own."""


class SnapshotError(LeewardError):
    """A snapshot is missing, damaged, or of a newer version than this program reads."""


class FencedError(LeewardError):
    """A writer of an older epoch tried to write: a newer owner exists."""


class NotReadyError(LeewardError):
    """The wanted thing does not exist yet; a later try may succeed."""


class ClusterRefusedError(LeewardError):
    """Nimbus, ZooKeeper or Redis refused or could not be reached (theirs, not ours)."""
