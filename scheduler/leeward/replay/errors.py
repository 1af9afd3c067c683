"""Errors of replay's own input and folders; a refusal by Redis is core's ClusterRefusedError."""

from __future__ import annotations

from leeward.core.errors import LeewardError


class ReplayError(LeewardError):
    """A file, folder or option is not what replay can work with."""


class StreamTakenError(ReplayError):
    """The stream holds entries that this run did not expect (no --resume, or another data set)."""


class SparkStartError(LeewardError):
    """Spark could not start (no JDK, too little memory); the text ends with the last lines of its log."""
