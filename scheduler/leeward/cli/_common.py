"""Names that several commands share."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from leeward.local.places import CLUSTER_VARIABLE, written

__all__ = ["BASE_PORT_VARIABLE", "CLUSTER_VARIABLE", "DEFAULT_DIR", "EXIT_INTERRUPTED", "refusing", "until_told"]

DEFAULT_DIR = written("cluster", here=Path.cwd())
#: Every command finds the cluster by these two variables, so one shell may have a cluster beside another's.
BASE_PORT_VARIABLE = "LEEWARD_BASE_PORT"
#: Exit code of a command that Ctrl-C ended.
EXIT_INTERRUPTED = 130


@contextmanager
def refusing(exit_code: int, *also: type[Exception]) -> Iterator[None]:
    """A LeewardError within, or another of these, is told in a line, and ends the command."""
    from leeward.core.errors import LeewardError

    told: tuple[type[Exception], ...] = (LeewardError, *also)
    try:
        yield
    except told as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(exit_code) from None


def until_told() -> asyncio.Event:
    """Set by Ctrl-C and SIGTERM."""
    event = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, event.set)
    return event
