"""The form of a settings file as JSON Schema (draft 2020-12), for editors and for checks outside of Leeward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from leeward.control.registry import NONE, settings_classes
from leeward.core.settings import TOPOLOGIES, WHOLE, Settings

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema() -> dict[str, Any]:
    """Of the service's settings, of each installed policy's in a table of its name, and of single topologies."""
    policies = settings_classes()
    own = {**_properties(Settings), **{name: _table(kind) for name, kind in policies}}
    own["policy"]["examples"] = sorted([NONE, *(name for name, _ in policies)])
    of_one = {name: form for name, form in own.items() if name not in WHOLE}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of leeward serve",
        "type": "object",
        "additionalProperties": False,
        "properties": {**own, TOPOLOGIES: _topologies()},
        "$defs": {"one": {"type": "object", "additionalProperties": False, "properties": of_one}},
    }


def _topologies() -> dict[str, Any]:
    return {
        "description": "settings of one topology alone, by its name; they go before the others",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/one"},
    }


def _table(kind: type) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": _properties(kind)}


def _properties(kind: type) -> dict[str, dict[str, Any]]:
    entries: Iterable[Field[Any]] = fields(kind)
    return {entry.name: _property(entry) for entry in entries}


def _property(entry: Field[Any]) -> dict[str, Any]:
    about, unit = entry.metadata["about"], entry.metadata["unit"]
    found: dict[str, Any] = {
        "description": f"{about} [{unit}]" if unit else about,
        "type": _TYPES[type(entry.default)],
        "default": entry.default,
    }
    if entry.metadata["choices"]:
        found["enum"] = list(entry.metadata["choices"])
    if type(entry.default) in (int, float):
        found["minimum"] = entry.metadata["least"]
    return found
