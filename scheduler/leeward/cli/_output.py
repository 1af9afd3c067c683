"""`--output table|json|yaml`: one result, as people read it or as programs do. Shared by all commands that tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer


class Output(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    yaml = "yaml"


OutputOption = Annotated[Output, typer.Option("--output", help="How to print the result.")]


def show(document: Mapping[str, Any], output: Output) -> None:
    """Print the result; as a table: a line for each value, and a table for each list of records."""
    if output is Output.table:
        _print(document)
    else:
        typer.echo(document_text(document, output), nl=False)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    lines = Table(box=None, show_header=False, pad_edge=False)
    records = {
        name: value for name, value in document.items() if value and isinstance(value, list) and _is_record(value)
    }
    for name, value in document.items():
        if name not in records and value not in ("", None, [], {}):
            lines.add_row(name.replace("_", " "), escape(_line(value)))
    console.print(lines)
    for name, rows in records.items():
        table = Table(*(str(key) for key in rows[0]), box=None, title=name.replace("_", " "), title_justify="left")
        for row in rows:
            table.add_row(*(escape(_line(value)) for value in row.values()))
        console.print(table)


def _is_record(value: list[Any]) -> bool:
    return all(isinstance(entry, Mapping) for entry in value)


def _line(value: Any) -> str:
    """One value in one line: `work n1:1 n2:2, sink n1:1`."""
    if isinstance(value, Mapping):
        if any(isinstance(inner, Mapping) for inner in value.values()):
            return ", ".join(f"{name} {_line(inner)}" for name, inner in value.items())
        return " ".join(f"{name}:{_line(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return " ".join(_line(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def document_text(document: Mapping[str, Any], output: Output) -> str:
    """The result for programs, the keys in the order of the document."""
    if output is Output.json:
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    import yaml

    plain = json.loads(json.dumps(document))  # tuples and text enumerations as YAML knows them
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
