"""`leeward fragments`: choices as JSON, and errors that name value and remedy."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.secrets import Secrets
from leeward.wire.secrets import write_secrets


def run(*arguments: str):
    return CliRunner().invoke(_build(), ["fragments", *arguments])


def test_a_choice_is_printed_as_json():
    found = json.loads(run("tune", "50", "--recover", "300").stdout)
    assert found["m"] >= 1 and found["k"] >= 1 and 0 < found["period_s"] <= 600


def test_a_service_level_that_cannot_be_kept_is_refused():
    done = run("tune", "5000", "--recover", "10")
    assert done.exit_code == 2 and "recover_s = 10" in done.output and "neighbours rebuild 5000.0 MB in" in done.output


@pytest.mark.parametrize(
    ("address", "secrets", "message"),
    [
        ("127.0.0.1:0", Secrets(redis_password="x"), "has no agent_secret"),
        ("nonsense", Secrets(agent_secret="x"), "address 'nonsense' is no HOST:PORT. Write it as"),
        ("127.0.0.1:67000", Secrets(agent_secret="x"), "address '127.0.0.1:67000' is no HOST:PORT"),
    ],
)
def test_an_agent_that_cannot_serve_says_why(tmp_path, address, secrets, message):
    write_secrets(tmp_path / "secrets.json", secrets)
    done = run("serve", address, "--dir", str(tmp_path / "kept"), "--secrets", str(tmp_path / "secrets.json"))
    assert done.exit_code == 2 and message in done.output
