"""Settings files: TOML, YAML and JSON say the same; the published schema accepts what the service accepts."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.cli._settings_file import read_document
from leeward.control.registry import make_policy, settings_classes
from leeward.control.settings_schema import schema
from leeward.core.errors import ConfigError, LeewardError
from leeward.core.settings import Settings, settings_from

VALIDATOR = jsonschema_rs.Draft202012Validator(schema())
POLICIES = dict(settings_classes())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.toml", 'policy = "edrp"\nperiod_s = 5\n[edrp]\nr_max_s = 0.2\n'),
        ("s.yaml", "policy: edrp\nperiod_s: 5\nedrp:\n  r_max_s: 0.2\n"),
        ("s.json", '{"policy": "edrp", "period_s": 5, "edrp": {"r_max_s": 0.2}}'),
    ],
)
def test_the_forms_say_the_same(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    assert read_document(tmp_path / name) == {"policy": "edrp", "period_s": 5, "edrp": {"r_max_s": 0.2}}


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("s.toml", "policy = ", "is not TOML"),
        ("s.yaml", "a: b\nc: [", r"line \d+ is not YAML"),
        ("s.yaml", "- a", "holds no keys"),
        ("s.yaml", "1: a", "holds no keys"),
        ("s.json", "{", "is not JSON"),
        ("gone.toml", None, "does not exist"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_name(tmp_path: Path, name: str, text: str | None, match: str):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=match) as error:
        read_document(tmp_path / name)
    assert name in str(error.value) and error.value.remedy


def test_an_empty_file_sets_nothing(tmp_path: Path):
    (tmp_path / "s.yaml").write_text("# nothing\n")
    assert read_document(tmp_path / "s.yaml") == {}


values = st.one_of(st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.sampled_from(["live", "restart", "x", ""]))
keys = st.sampled_from([entry.name for entry in fields(Settings)] + ["unknown"])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    """With a wrong key or value now and then."""
    document: dict[str, object] = draw(st.dictionaries(keys, values, max_size=3))
    document.pop("policy", None)  # its name is checked by what is installed
    for name in draw(st.lists(st.sampled_from(sorted(POLICIES)), max_size=1)):
        own = st.sampled_from([entry.name for entry in fields(POLICIES[name])] + ["unknown"])
        document[name] = draw(st.dictionaries(own, values, max_size=2))
    return document


def read(document: dict[str, object]) -> None:
    """As the service does; raises ConfigError."""
    chosen = settings_from(document)
    for name, own in chosen.policies.items():
        make_policy(name, own)


@given(documents())
def test_the_schema_accepts_what_the_service_accepts(document):
    valid = VALIDATOR.is_valid(document)
    try:
        read(document)
    except LeewardError:
        # a policy checks more than single settings; and to JSON 3.0 is a whole number
        assert not valid or any(isinstance(value, float | dict) for value in document.values())
    else:
        assert valid


def test_one_topology_may_have_its_own_settings():
    assert VALIDATOR.is_valid({"topologies": {"query1": {"policy": "edrp", "edrp": {"r_max_s": 0.2}}}})
    for of_the_service in ({"topologies": {}}, {"at_once": 1}, {"look_s": 1.0}):
        assert not VALIDATOR.is_valid({"topologies": {"query1": of_the_service}})


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(_build(), ["validate", *words])
    return done.exit_code, done.output


def test_validate_says_which_policies_are_chosen(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_text("policy: even\ntopologies: {query1: {policy: none}}\n")
    code, told = run(str(file))
    assert code == 0 and "nothing is wrong (all topologies by even; query1 by none)" in told


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("period: 5", "unknown setting 'period'"),
        ("policy: evn", "evn"),
        ("agiledart: {drain: 1}", "unknown setting 'agiledart.drain'"),
        ("topologies: {query1: {period_s: fast}}", "period_s"),
        ("network: gone.toml", "gone.toml"),
    ],
)
def test_validate_names_the_first_wrong_setting(tmp_path: Path, text: str, match: str):
    file = tmp_path / "s.yaml"
    file.write_text(text)
    code, told = run(str(file))
    assert code == 2 and match in told.replace("\n", " ")


def test_validate_prints_the_published_schema():
    code, told = run("--schema")
    assert code == 0 and json.loads(told) == schema()
    assert run()[0] == 2
