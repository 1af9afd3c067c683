"""One word for one thing: the glossary has every name of the protocol, and no word twice."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from leeward.control.registry import describe_all, setting_names
from leeward.core.control import Phase
from leeward.core.instructions import Kind, Mode
from leeward.core.journal import StepName
from leeward.core.orders import State
from tests.helpers.doc_blocks import ROOT

GLOSSARY = (ROOT / "docs/glossary.md").read_text()
#: Enumeration -> what the glossary calls its members.
NAMES = {
    Kind: "marker",
    Phase: "phase",
    Mode: "mode",
    State: "coordinator's state",
    StepName: "step of the journal",
}

#: Words that have another meaning elsewhere, or more than one reading.
AMBIGUOUS = (
    "record", "phase", "mode", "journal", "barrier", "fence", "channel fence", "snapshot", "Nimbus snapshot", "cut",
    "channel", "ahead", "step", "table", "slot", "absent", "told", "apart", "bring", "round", "term", "witness",
)  # fmt: skip


def rows(text: str, cells: int) -> list[list[str]]:
    """Rows of the tables with so many cells, heads left out."""
    found = [line.strip("| ").split(" | ") for line in text.split("\n") if line.startswith("| ")]
    return [row for row in found if len(row) == cells and row[0] not in ("word", "name", "---")]


def names() -> dict[str, tuple[str, str]]:
    """Name in the protocol -> what it is, and its meaning."""
    return {name.strip("`"): (kind, meaning) for name, kind, meaning in rows(GLOSSARY, 3)}


def words() -> list[str]:
    return [word for row in rows(GLOSSARY, 2) for word in re.split(r", | / ", row[0])]


@pytest.mark.parametrize("enumeration", NAMES, ids=lambda enumeration: enumeration.__name__)
def test_every_name_of_the_protocol_is_explained_as_what_it_is(enumeration):
    for member in enumeration:
        kind, meaning = names().get(member.value, ("", ""))
        assert NAMES[enumeration] in kind.split(", "), f"docs/glossary.md lacks {member.value} as {NAMES[enumeration]}"
        assert meaning


def test_no_name_is_explained_that_the_protocol_does_not_have():
    there = {(member.value, what) for enumeration, what in NAMES.items() for member in enumeration}
    assert {(name, what) for name, (kinds, _) in names().items() for what in kinds.split(", ")} == there


def test_no_word_is_explained_twice():
    assert [word for word, times in Counter(words()).items() if times > 1] == []
    assert len(rows(GLOSSARY, 3)) == len(names())


@pytest.mark.parametrize("word", AMBIGUOUS)
def test_words_of_the_code_are_there(word):
    assert word in words()


def test_every_setting_is_printed_with_its_meaning():
    printed = dict(line.split(" = ", 1) for line in describe_all().split("\n") if " = " in line)
    assert set(setting_names()) < printed.keys()
    for name, about in printed.items():
        assert len(about.partition(": ")[2].split()) >= 2, name
