"""Sentences name their actor: none has a free relative clause as its subject ("Who owns groups reads ...")."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.doc_blocks import ROOT

#: Clauses begin at the start of a text, and behind these; a list item or a cell of a table begins one, too.
BEGINS = re.compile(
    r"(?:^|(?<=[.;:!?]\s)|(?<=^[-*|]\s)|(?<=\|\s))"
    r"((?:who|whom|whoever|whomever|what|whatever|whichever|that which)\b[^.;:!?|]*[.;:!?|]?)",
    re.IGNORECASE | re.MULTILINE,
)
#: Words that are a free relative clause wherever they are.
NEVER = re.compile(r"\b(?:whoever|whomever)\b", re.IGNORECASE)
FOLDERS = ("scheduler", "bolts", "topologies", "scripts")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "containers").glob("*.md")),
]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Line, and the text that begins there: paragraphs of docstrings and pages, comments block by block."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from _docstrings(source)
        yield from _comments(source)
        return
    plain = re.sub(r"```.*?```|^#[^\n]*$", _blank, source, flags=re.DOTALL | re.MULTILINE)
    for text in re.finditer(r"(?:^.+\n)+", plain, re.MULTILINE):
        yield plain[: text.start()].count("\n") + 1, text[0]


def _blank(block: re.Match) -> str:
    """A block of code, or a heading, without its text, in as many lines."""
    return "\n" * block[0].count("\n")


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                if paragraph:
                    yield getattr(node, "lineno", 1), paragraph


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments on lines of their own that follow each other are one text."""
    first, last, text = 0, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        own = token.line.strip().startswith("#")
        words = token.string.lstrip("#:-– ").rstrip(" -")
        if own and text and token.start[0] == last + 1:
            text += " " + words
        else:
            if text:
                yield first, text
            first, text = token.start[0], words
        last = token.start[0] if own else -1
    if text:
        yield first, text


def faults(text: str) -> list[str]:
    """The clauses of a text that begin with a free relative, questions left out."""
    joined = re.sub(r"\n(?![-*|] )\s*", " ", text)
    found = [match[1] for match in BEGINS.finditer(joined) if not match[1].endswith("?")]
    return found + [match[0] for match in NEVER.finditer(joined) if not any(match[0] in clause for clause in found)]


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_has_a_free_relative_clause_as_its_subject(path):
    found = [f"{path.relative_to(ROOT)}:{line}: {fault}" for line, text in prose(path) for fault in faults(text)]
    assert not found, "name the actor (donor, owner, coordinator, ...):\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Only few report. Who owns groups reads that record at once.",
        "What it is told is told before.",
        "A list: what comes waits.",
        "- one\n- what is sent is kept\n",
        "| a | what is left |\n",
        "The closed journal answers whoever asked.",
    ],
)
def test_free_relatives_are_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "Those who own groups read it.",
        "It knows what to do.",
        "What would it cost? Nothing.",
        "The task decides what is sent; a receiver acknowledges it.",
    ],
)
def test_other_clauses_are_not(text):
    assert not faults(text)
