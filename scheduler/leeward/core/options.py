"""Settings as frozen dataclasses: each one once, with its default, unit, bound and a sentence; read, checked, printed.

A class of settings is `@dataclass(frozen=True, slots=True, kw_only=True)`, its fields are made by `setting`, and its
`__post_init__` calls `check`. The service's settings are one such class (`core/settings.py`), each policy's another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from leeward.core.errors import ConfigError

T = TypeVar("T")


def setting(
    default: Any, unit: str, about: str, *, least: float = 0.0, choices: tuple[str, ...] = (), local: bool = False
) -> Any:
    """A field of a class of settings. `least`: lower bound of a number; `choices`: all values of a text; `local`: it
    names a file or a server, so only people of the machine may set it, not those that ask the HTTP API.
    """
    metadata = {"unit": unit, "about": about, "least": least, "choices": choices, "local": local}
    return field(default=default, metadata=metadata)


def local_names(kind: type) -> frozenset[str]:
    """Names of the settings of this class that only people of the machine may set."""
    return frozenset(entry.name for entry in fields(kind) if entry.metadata.get("local"))


def check(settings: Any, *, where: str = "") -> None:
    """Raises ConfigError naming the first field with a wrong value. `where`: prefix of the names, as `edrp.`."""
    for entry in fields(settings):
        _check(f"{where}{entry.name}", getattr(settings, entry.name), entry)


def read(kind: type[T], values: Mapping[str, object], *, where: str = "") -> T:
    """Settings of class `kind`; texts are read as the field's type. Raises ConfigError naming key, value and remedy."""
    known: dict[str, Field[Any]] = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    refuse_unknown("setting", values, known, where=where)
    typed = {name: _typed(f"{where}{name}", value, known[name]) for name, value in values.items()}
    return kind(**typed)


def refuse_unknown(
    what: str, values: Mapping[str, object], known: Iterable[str], *, where: str = "", more: Iterable[str] = ()
) -> None:
    """Raises ConfigError for a key that is not known, with the nearest names of `known` and `more`."""
    names = list(known)
    for key in values:
        if key not in names:
            more = tuple(more)
            near = [name for name in more if name.rpartition(".")[2] == key]
            near = near or get_close_matches(key, [*names, *more], n=3, cutoff=0.4)
            shown = [name if name in more else f"{where}{name}" for name in near]
            every = ", ".join(f"{where}{name}" for name in names)
            hint = f"Did you mean {' or '.join(shown)}?" if near else f"Known: {every}."
            raise ConfigError(f"unknown {what} '{where}{key}' (value {values[key]!r}).", remedy=hint)


def describe(kind: type, *, where: str = "") -> str:
    """One line for each setting: name, default, unit, meaning."""
    lines = []
    for entry in fields(kind):
        unit = f" {entry.metadata['unit']}" if entry.metadata["unit"] else ""
        choices = entry.metadata["choices"]
        more = f" ({', '.join(choices)})" if choices else ""
        lines.append(f"{where}{entry.name} = {entry.default!r}{unit}: {entry.metadata['about']}{more}")
    return "\n".join(lines)


def _check(name: str, value: Any, entry: Field[Any]) -> None:
    kind = type(entry.default)
    right = type(value) is kind or (kind is float and type(value) is int)
    if not right:
        raise ConfigError(
            f"setting {name!r} is {value!r}, of type {type(value).__name__}.",
            remedy=f"Give {_a(kind)}, such as {entry.default!r}.",
        )
    choices = entry.metadata["choices"]
    if choices and value not in choices:
        raise ConfigError(f"setting {name!r} is {value!r}.", remedy=f"Choose one of {', '.join(choices)}.")
    if kind in (int, float) and not (math.isfinite(value) and value >= entry.metadata["least"]):
        raise ConfigError(
            f"setting {name!r} is {value!r}.", remedy=f"Give a number of at least {entry.metadata['least']:g}."
        )


def _a(kind: type) -> str:
    return {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}[kind]


def _typed(name: str, value: object, entry: Field[Any]) -> object:
    """A text of the command line as the field's type; values of other types as they are."""
    kind: type = type(entry.default)
    if not isinstance(value, Text):
        return value
    if kind is str:
        return str(value)
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"setting {name!r} is {str(value)!r}.", remedy="Give true or false.")
        return value.lower() == "true"
    try:
        return float(value) if kind is float else int(value)
    except ValueError:
        raise ConfigError(f"setting {name!r} is {str(value)!r}.", remedy=f"Give {_a(kind)}.") from None


class Text(str):
    """A value from the command line: a text that stands for a value of the setting's type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(str(self))
