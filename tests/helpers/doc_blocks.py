"""The code fences of a Markdown file, as values that tests can run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code fence."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The path in the first line's comment: where a reader is to save the block."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# ") if first.startswith("# ") and first.endswith((".py", ".toml")) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line of a shell block."""

    line: str
    words: tuple[str, ...]  #: without comment and leading assignments

    @property
    def program(self) -> str:
        return self.words[0]


def blocks(path: Path) -> list[Block]:
    """All fences with a language, in order."""
    return [Block(language=language, text=text) for language, text in _FENCE.findall(path.read_text())]


def commands(path: Path) -> list[Command]:
    """Every line of every `sh` block."""
    found = []
    for block in blocks(path):
        for line in block.text.splitlines() if block.language == "sh" else ():
            words = shlex.split(line, comments=True)
            while words and _ASSIGNMENT.fullmatch(words[0]):
                words.pop(0)
            if words:
                found.append(Command(line=line, words=tuple(words)))
    return found


def write_files(path: Path, folder: Path) -> list[str]:
    """Save the blocks that name a file; their names."""
    named = {block.file: block.text for block in blocks(path) if block.file}
    for name, text in named.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return list(named)
