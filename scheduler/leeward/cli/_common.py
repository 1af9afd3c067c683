"""Names that several commands share."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from leeward.local.places import CLUSTER_VARIABLE, written

__all__ = [
    "BASE_PORT_VARIABLE", "CLUSTER_VARIABLE", "DEFAULT_DIR", "EXIT_BAD_INPUT", "EXIT_INTERRUPTED", "EXIT_REFUSED",
    "refusing", "sigterm_interrupts", "until_told",
]  # fmt: skip

DEFAULT_DIR = written("cluster", here=Path.cwd())
#: Every command finds the cluster by these two variables, so one shell may have a cluster beside another's.
BASE_PORT_VARIABLE = "LEEWARD_BASE_PORT"
#: Exit codes: the cluster refused or something did not come about, bad input, Ctrl-C.
EXIT_REFUSED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130


@contextmanager
def refusing(exit_code: int = EXIT_BAD_INPUT, *also: type[Exception]) -> Iterator[None]:
    """A LeewardError or OSError within, or another of these, is told in a line, and ends the command.

    `exit_code`: for what is not the cluster's fault. Ctrl-C ends it with 130, without a word.
    """
    from leeward.core.errors import ClusterRefusedError, LeewardError, NotReadyError

    told: tuple[type[Exception], ...] = (LeewardError, OSError, *also)
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:  # its reader has read enough
        raise
    except told as error:
        typer.echo(f"error: {error}", err=True)
        refused = isinstance(error, ClusterRefusedError | NotReadyError)
        raise typer.Exit(EXIT_REFUSED if refused else exit_code) from None


def sigterm_interrupts() -> None:
    """From now on SIGTERM ends everything, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def until_told() -> asyncio.Event:
    """Set by Ctrl-C and SIGTERM."""
    event = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, event.set)
    return event
