"""Small C programs and libraries of the local cluster: compiled where they are first wanted, then kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from leeward.local.errors import NotInstalledError

_COMPILE_S = 60.0


def built(source: bytes, target: Path, flags: Sequence[str], *, name: str, without: str = "", anyway: str = "") -> Path:
    """`target`, whose name gets a digest of the source; made once for each version of it.

    `name` is what it is, `without` what does not work without a compiler, `anyway` how to do without it. Raises
    NotInstalledError.
    """
    target = target.with_name(f"{target.stem}-{hashlib.sha256(source).hexdigest()[:12]}{target.suffix}")
    if not target.exists():
        _compile(source, target, flags, name, without, anyway)
    return target


def compiler() -> str | None:
    """Path of a C compiler."""
    return shutil.which("cc") or shutil.which("gcc")


def _compile(source: bytes, target: Path, flags: Sequence[str], name: str, without: str, anyway: str) -> None:
    program = compiler()
    if program is None:
        raise NotInstalledError(
            f"C compiler: neither cc nor gcc is on PATH{without}.",
            remedy=f"Run `make setup`, or install gcc and libc6-dev. {anyway}",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}")
    command = [program, "-x", "c", "-", "-o", str(part), "-O2", "-Wall", "-Wextra", *flags]
    done = subprocess.run(command, input=source, capture_output=True, timeout=_COMPILE_S)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        raise NotInstalledError(
            f"{name}: {program} failed: {lines[0] if lines else f'exit code {done.returncode}'}.",
            remedy=f"Install gcc and libc6-dev. {anyway}",
        )
    part.replace(target)
