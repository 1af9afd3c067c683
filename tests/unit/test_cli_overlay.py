"""`leeward overlay`: what is wrong with addresses, secrets, files and settings is said, with what helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.secrets import Secrets
from leeward.wire.secrets import write_secrets


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    write_secrets(tmp_path / "secrets.json", Secrets(agent_secret="0123456789abcdef"))
    return tmp_path / "secrets.json"


def run(*arguments: object):
    return CliRunner().invoke(_build(), ["overlay", *map(str, arguments)])


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "address 'nonsense' cannot be read. Write HOST:PORT."),
        ("127.0.0.1:0", "port 0: it is out of range"),
        ("127.0.0.1:70000", "port 70000: it is out of range"),
        ("no.such.host.invalid:6800", "host 'no.such.host.invalid' has no address"),
    ],
)
def test_an_address_that_cannot_be_used_is_named(address: str, message: str, secrets: Path):
    for command in (("serve", address), ("serve", "127.0.0.1:6800", "--join", address), ("status", address)):
        done = run(*command, "--secrets", secrets)
        assert done.exit_code == 2 and message in done.output, done.output


def test_a_secrets_file_without_a_secret_of_agents_is_refused(tmp_path: Path):
    write_secrets(tmp_path / "secrets.json", Secrets(redis_password="x"))
    done = run("serve", "127.0.0.1:6800", "--secrets", tmp_path / "secrets.json")
    assert done.exit_code == 2 and "has no agent_secret. Put one into it." in done.output


def test_a_wrong_setting_of_the_service_ends_the_agent_before_it_begins(secrets: Path):
    done = run("serve", "127.0.0.1:6800", "--secrets", secrets, "--nimbus", "127.0.0.1:1", "-o", "perod_s=1")
    assert done.exit_code == 2 and "perod_s" in done.output and "period_s" in done.output


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "it has no applications"),
        ({"a": []}, "application 'a' has 0 operators"),
        ({"a": "text"}, "a = 'text': must be a list"),
        ({"a": [{"name": "x", "read": ["y"]}]}, "a[0].read"),
        ({"a": [{"reads": []}]}, "a[0].name"),
        ({"a": [{"name": "x", "reads": ["y"]}]}, "a[0] reads 'y', which is not before it"),
        ({"a": [{"name": 5}]}, "a[0].name"),
        ({"a": [{"name": "x", "reads": "y"}]}, "a[0].reads"),
    ],
)
def test_a_file_of_applications_that_is_wrong_is_refused(document: object, message: str, secrets: Path, tmp_path: Path):
    (tmp_path / "apps.json").write_text(json.dumps(document))
    done = run("place", "127.0.0.1:6800", tmp_path / "apps.json", "--secrets", secrets)
    assert done.exit_code == 2 and message in done.output, done.output


@pytest.mark.parametrize("command", ["serve", "status", "place", "end"])
def test_help_has_an_example(command: str):
    assert f"Example: leeward overlay {command} " in " ".join(run(command, "--help").output.split())
