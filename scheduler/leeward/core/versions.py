"""Documents in ZooKeeper carry the version of their form: one of a newer release is refused, not guessed at."""

from __future__ import annotations

from leeward.core.errors import ProtocolError


def refuse_newer(subject: str, version: int, known: int, *, writer: str) -> None:
    """Raises ProtocolError for a version above `known`. `subject`: of the sentence; `writer`: the part that wrote."""
    if version > known:
        raise ProtocolError(
            f"{subject} field 'version' is {version}, this program reads {known}.",
            remedy=f"Update Leeward on this machine: a newer {writer} worked here.",
        )
