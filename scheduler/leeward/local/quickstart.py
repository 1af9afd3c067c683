"""Write a small streamparse project that is elastic from its first run."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from leeward import __version__
from leeward.core.errors import ConfigError
from leeward.local.places import quickstart

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
#: Files in which $name and $version stand for the project's name and our release.
_TEMPLATES = {"README.md", "requirements.txt"}
#: A package must not have a .gitignore of its own: build back ends obey it.
_RENAMED = {"gitignore": ".gitignore"}


def write_project(folder: Path) -> list[str]:
    """Write the project into a new or empty folder; the paths of its files.

    Raises ConfigError for a name that is no identifier, and for a folder that holds something.
    """
    if not _NAME.fullmatch(folder.name):
        raise ConfigError(
            f"name: {folder.name!r} is no project name.", remedy="Letters, digits, '_' and '-', a letter first."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder: {folder} holds something already.", remedy="Give the name of a new folder.")
    template, written = quickstart(), []
    for source in sorted(path for path in template.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        name = source.relative_to(template).as_posix()
        path = Path(name).with_name(_RENAMED.get(source.name, source.name))
        text = source.read_text()
        if name in _TEMPLATES:
            text = Template(text).substitute(name=folder.name, version=__version__)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        written.append(path.as_posix())
    return written
