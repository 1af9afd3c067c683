"""Reads the secrets file (`leeward.core.secrets`), which only its owner may read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.core.secrets import FILE_KEY, FILE_VARIABLE, NO_SECRETS, Secrets

#: A file of secrets is not larger.
_LONGEST = 65536


def read_secrets(path: str | os.PathLike[str]) -> Secrets:
    """The secrets in this file. Raises ConfigError if it is not there, not private or not right."""
    where = f"secrets file {os.fspath(path)!r}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not block
    except OSError as error:
        raise ConfigError(
            f"{where} cannot be read: {error.strerror}.",
            remedy=f"Put it there with mode 600, or correct {FILE_KEY} ({FILE_VARIABLE} for commands).",
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{where} is not a regular file.", remedy="Name a JSON file.")
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            raise ConfigError(f"{where} has mode {mode:o}: others can read it.", remedy=f"chmod 600 {os.fspath(path)}")
        return Secrets.from_json(os.read(descriptor, _LONGEST).decode(errors="replace"), where=where)
    finally:
        os.close(descriptor)


def secrets_of(conf: Mapping[str, object]) -> Secrets:
    """The secrets of the file that a topology's configuration names; none without one."""
    path = conf.get(FILE_KEY)
    if path is None:
        return NO_SECRETS
    if not isinstance(path, str) or not path:
        raise ConfigError(f"configuration {FILE_KEY} is {path!r}.", remedy="Give the path of the secrets file.")
    return read_secrets(path)


def write_secrets(path: Path, secrets: Secrets) -> None:
    """Write the file whole, readable by its owner alone from its first moment."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(secrets.to_json())
    part.replace(path)
