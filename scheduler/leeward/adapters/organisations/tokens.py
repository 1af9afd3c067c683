"""Tokens: the file that holds them, and the name that a token stands for.

    {"domain-north": "a long random text", "provider-a": "another one"}

Only its owner may read the file.  A token decides the name of the organisation that presents it, so nobody can speak
for another.
"""

from __future__ import annotations

import hmac
import json
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from leeward.core.errors import ConfigError

#: Characters of a token.
SHORTEST = 16
#: Bytes of a file of tokens.
LARGEST_FILE = 1 << 20
MAKE_ONE = 'Make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'


def read_tokens(path: str | os.PathLike[str]) -> dict[str, str]:
    """Name -> token of a file. Raises ConfigError if it is not there, not private or not right; shows no token."""
    where = f"file of tokens {os.fspath(path)!r}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not block
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}.", remedy="Put it there with mode 600.") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{where} is not a regular file.", remedy="Name a JSON file.")
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            raise ConfigError(f"{where} has mode {mode:o}: others can read it.", remedy=f"chmod 600 {os.fspath(path)}")
        content = os.read(descriptor, LARGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{where} has more than {LARGEST_FILE} bytes.", remedy="Name the file of tokens.")
    return tokens_from_json(content.decode(errors="replace"), where=where)


def tokens_from_json(text: str, *, where: str) -> dict[str, str]:
    """Name -> token; `where` names the file in errors. Raises ConfigError, which shows no token."""
    try:
        tokens = json.loads(text)
    except (ValueError, RecursionError):  # the message may quote the file
        tokens = None
    if not isinstance(tokens, dict):
        raise ConfigError(f"{where} is not a JSON object.", remedy='Write {"name": "token", ...}.')
    names: dict[str, str] = {}
    for name, token in tokens.items():
        if not name:
            raise ConfigError(f"{where}: a name is empty.", remedy="Name the organisation that has the token.")
        if not isinstance(token, str):
            raise ConfigError(f"{where}: the token of {name!r} is no text.", remedy="Quote it.")
        if len(token) < SHORTEST:
            raise ConfigError(
                f"{where}: the token of {name!r} has {len(token)} characters, at least {SHORTEST} are needed.",
                remedy=MAKE_ONE,
            )
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise ConfigError(
                f"{where}: the token of {name!r} has characters that no header can carry.", remedy=MAKE_ONE
            )
        if token in names:
            raise ConfigError(
                f"{where}: {names[token]!r} and {name!r} have the same token, which has to decide the name.",
                remedy=MAKE_ONE,
            )
        names[token] = name
    return {name: token for token, name in names.items()}


def write_tokens(path: Path, tokens: Mapping[str, str]) -> None:
    """Write the file whole, readable by its owner alone from its first moment."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(dict(tokens), indent=1) + "\n")
    part.replace(path)


class Tokens:
    """The names that may speak to an organisation."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        # digests have one length, so a comparison does not even tell the length of a token
        self._digests = {name: sha256(token.encode()).digest() for name, token in tokens.items()}

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._digests)

    def name_of(self, authorization: str | None) -> str | None:
        """The name that a header `Authorization: Bearer ...` proves, compared with all in constant time; or None."""
        scheme, _, token = (authorization or "").partition(" ")
        given = sha256(token.strip().encode()).digest()
        found = None
        for name, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found if scheme.lower() == "bearer" else None
