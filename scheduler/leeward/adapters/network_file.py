"""A network file (TOML, docs/operations.md) to a network."""

from __future__ import annotations

import tomllib
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.core.network import Network
from leeward.core.network_document import parse_network


def read_network(file: Path) -> Network:
    """Read a network file. Raises ConfigError, which names the file."""
    try:
        return parse_network(tomllib.loads(file.read_text()))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).", remedy="Name a network file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is no TOML: {error}.", remedy="See docs/operations.md.") from None
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.message}", remedy=error.remedy) from None


def network_named(file: str) -> Network | None:
    """The network of the setting `network`; None if it names no file. Raises ConfigError."""
    return read_network(Path(file)) if file else None
