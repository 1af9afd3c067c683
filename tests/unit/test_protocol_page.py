"""docs/protocol.md is what the code prints, and the program that prints it misses nothing."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from leeward.core import migration, protocol
from leeward.core.control import ControlRecord, Phase
from leeward.core.instructions import Fact, Kind, Mode
from leeward.core.journal import StepName
from leeward.core.orders import State
from tests.helpers.doc_blocks import ROOT
from tests.helpers.scripts_loaded import script


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return script("protocol_page")


def test_the_page_of_settings_is_what_the_code_prints():
    assert (ROOT / "docs/settings.md").read_text() == script("settings_page").page(), "run: make pages"
    assert (ROOT / "docs/settings.schema.json").read_text() == script("settings_page").schema_text(), "run: make pages"


def test_the_list_of_results_is_what_the_pages_say():
    text = (ROOT / "docs/results/README.md").read_text()
    assert text == script("results_page").page(), "run: make pages"
    pages = {page.name for page in (ROOT / "docs/results").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"^\| \[[\w-]+\]\(([\w.-]+)\)", text, re.MULTILINE)) == pages


def test_the_page_is_what_the_code_prints(program):
    assert (ROOT / "docs/protocol.md").read_text() == program.page(), "run: make pages"


@pytest.mark.parametrize("enumeration", [Mode, Fact, Kind, Phase, State, StepName])
def test_every_member_has_a_meaning(program, enumeration):
    assert program.meanings(enumeration).keys() >= set(enumeration.__members__)


def test_meanings_are_read_behind_a_field_and_before_it(program):
    about = program.meanings(ControlRecord)
    assert about["base"] == "epoch in which the state in memory was established"
    assert program.meanings(program.orders.Limits)["step_groups"].startswith("Groups that one task gives")


@pytest.mark.parametrize("rows", [protocol.TRANSITIONS, migration.TRANSITIONS], ids=["task", "coordinator"])
def test_every_transition_is_on_the_page(program, rows):
    def name(what):
        return f"`{what if isinstance(what, Fact) else what.__name__}`"

    shown = program.transitions(rows, name) + program.ignored(rows, name)
    for (state, what), (handler, _) in rows.items():
        if program.is_ignored(handler):
            assert any(line.startswith(f"| {name(what)} |") and f"`{state}`" in line for line in shown.split("\n"))
        else:
            assert f"| `{state}` | {name(what)} |" in shown
