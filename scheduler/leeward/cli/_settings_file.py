"""A file of settings: TOML, YAML or JSON by its name."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from leeward.core.errors import ConfigError

_YAML = (".yaml", ".yml")


def read_document(file: Path) -> Mapping[str, object]:
    """The parsed file. Raises ConfigError, naming the file and the place, for one that cannot be read."""
    return parse_document(file, read_text(file))


def read_text(file: Path) -> str:
    """Raises ConfigError for a file that cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise ConfigError(f"--config {file} {why}.", remedy="Name a TOML, YAML or JSON file.") from None


def parse_document(file: Path, text: str) -> Mapping[str, object]:
    """The text of this file. Raises ConfigError."""
    document = _parsed(file, text)
    if document is None:
        return {}
    if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
        raise ConfigError(f"--config {file} holds no keys.", remedy="Write settings as key and value.")
    return document


def _parsed(file: Path, text: str) -> object:
    suffix = file.suffix.lower()
    if suffix in _YAML:
        import yaml

        try:
            return yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f", line {mark.line + 1}" if mark else ""
            raise ConfigError(f"--config {file}{place} is not YAML.", remedy="Write lines of key: value.") from None
    if suffix == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--config {file} is not JSON: {error}.", remedy="Write one object.") from None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"--config {file} is not TOML: {error}.", remedy="Write key = value lines.") from None
