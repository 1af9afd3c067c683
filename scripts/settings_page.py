"""docs/settings.md and docs/settings.schema.json from the code: `python scripts/settings_page.py --write`."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path

from leeward.control.registry import settings_classes
from leeward.control.settings_schema import schema
from leeward.core import topology_conf
from leeward.core.settings import Settings

PAGE = Path(__file__).parents[1] / "docs/settings.md"
SCHEMA = PAGE.with_name("settings.schema.json")
INTRODUCTION = """# Settings

Printed from the code by `python scripts/settings_page.py --write`; do not edit it by hand.

The service reads its settings from `--config FILE` (TOML, YAML or JSON, by its name) and `-o key=value`; an option
overrides the file. A policy's settings stand in a table of the policy's name (`[edrp]`), or are given as
`-o edrp.key=value`. An unknown key is refused, and the error names the nearest known ones.

A running service reads the file again when it has changed. Good settings come into force at once, and each topology is
taken over anew, unless no setting has changed and none names a file. Wrong ones are in the log (`settings_refused`),
and the last good ones stay.

```sh
leeward validate leeward.yaml     # the same checks without a cluster: exit code 0 nothing is wrong, 2 something is
leeward validate --schema         # the form of such a file, for editors: settings.schema.json
```
"""
TOPOLOGY = """## Keys of a topology

A topology gives these in its `config`, a component in its own, and `leeward submit -o key=value` for one submission.
Leeward sets the internal ones itself. An unknown key that begins with `leeward.` is refused.
"""


def rows(kind: type, where: str = "") -> str:
    """The settings of one class as a table in Markdown."""
    lines = ["| setting | default | unit | |", "| --- | --- | --- | --- |"]
    for entry in fields(kind):
        default = str(entry.default).lower() if isinstance(entry.default, bool) else entry.default
        choices = f" ({', '.join(entry.metadata['choices'])})" if entry.metadata["choices"] else ""
        about = f"{entry.metadata['about']}{choices}".replace("|", "\\|")
        lines.append(f"| `{where}{entry.name}` | {default} | {entry.metadata['unit']} | {about} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## The service\n", rows(Settings)]
    for name, kind in settings_classes():
        parts += [f"## Policy `{name}`\n", rows(kind, f"{name}.")]
    return "\n".join([*parts, TOPOLOGY, topology_conf.page()]) + "\n"


def schema_text() -> str:
    """The published JSON Schema."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
        SCHEMA.write_text(schema_text())
    else:
        print(page(), end="")
