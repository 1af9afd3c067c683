"""Errors of a cluster on this machine."""

from __future__ import annotations

from leeward.core.errors import LeewardError


class NotInstalledError(LeewardError):
    """A program, a jar or the Storm home that set-up provides is not there."""


class PortsTakenError(LeewardError):
    """Another process listens on a port that the cluster needs."""


class FolderError(LeewardError):
    """The run folder holds a running cluster, somebody else's files, or no cluster where one is needed."""


class StartError(LeewardError):
    """A daemon died or was not ready in time; the text holds the tail of its log."""


class StopError(LeewardError):
    """A process outlived SIGKILL."""


class NameTakenError(LeewardError):
    """A topology of this name runs already."""


class SubmitError(LeewardError):
    """`sparse submit` failed."""
