"""Errors of a rollout. Each names the host."""

from __future__ import annotations

from leeward.core.errors import LeewardError


class RolloutRefusedError(LeewardError):
    """Facts of one or more hosts forbid the rollout; nothing was changed anywhere."""


class HostError(LeewardError):
    """A command failed on a host, or the host cannot be reached."""


class LostHostError(HostError):
    """A host cannot be reached, or not any more."""


class RolledBackError(LeewardError):
    """A step or a health check failed; all hosts have again what they had before."""


class RollBackFailedError(LeewardError):
    """The rollback failed too; the text names the host and what is left to do by hand."""
