"""Typed values of a component's Storm configuration, with errors that name key, value and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

from leeward.core.errors import ConfigError

T = TypeVar("T")


def typed(conf: Mapping[str, Any], key: str, kind: type[T], default: T) -> T:
    """The value of `key`; where a float is wanted an int is one, too. Raises ConfigError."""
    value = conf.get(key, default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ConfigError(
            f"{key} is {value!r} of type {type(value).__name__}.",
            remedy=f"Set it to a value of type {kind.__name__}.",
        )
    return value


def whole(conf: Mapping[str, Any], key: str, default: int) -> int:
    """A whole number, at least 1. Raises ConfigError."""
    value = typed(conf, key, int, default)
    if value < 1:
        raise ConfigError(f"{key} is {value}.", remedy="It must be at least 1.")
    return value


def amount(conf: Mapping[str, Any], key: str, default: float) -> float:
    """A finite number above 0, or the default, which may be 0, where the key is not set. Raises ConfigError."""
    value = typed(conf, key, float, default)
    if key in conf and not (isfinite(value) and value > 0):
        raise ConfigError(f"{key} is {value}.", remedy="It must be a number above 0.")
    return value
