"""The secrets file: who may read it, what may be in it, and that no message shows it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from kazoo.protocol.serialization import Auth
from typer.testing import CliRunner

from leeward.adapters.wiring import Addresses, secrets_for
from leeward.cli import _build
from leeward.core.errors import ConfigError
from leeward.core.secrets import NO_SECRETS, Secrets, refuse_password, without_password
from leeward.local.submit import check_no_password
from leeward.wire.secrets import read_secrets, secrets_of, write_secrets
from leeward.wire.zookeeper import client

FULL = Secrets(
    redis_password="p/w:1", redis_user="app", rabbitmq_password="rabbit", rabbitmq_user="bunny", zookeeper_secret="z1"
)

FINISHED = SimpleNamespace(sent=1, rows=1, note="")


def file_with(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "secrets.json"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("secrets", [FULL, NO_SECRETS, Secrets(redis_password="x")])
def test_what_is_written_is_read_again_and_private(tmp_path: Path, secrets: Secrets):
    path = tmp_path / "secrets.json"
    before = os.umask(0)
    try:
        write_secrets(path, secrets)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert read_secrets(path) == secrets
    assert [entry.name for entry in tmp_path.iterdir()] == ["secrets.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int):
    path = file_with(tmp_path, FULL.to_json(), mode)
    with pytest.raises(ConfigError, match=rf"secrets.json' has mode {mode:o}: others can read it. chmod 600 /"):
        read_secrets(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a JSON object"),
        ('{"redis_password": hidden}', "is not a JSON object"),
        ('["hidden"]', "is not a JSON object"),
        ('{"redis_pasword": "hidden"}', "'redis_pasword' is not known"),
        ('{"redis_password": 17}', "redis_password is no text"),
        ('{"zookeeper_secret": ""}', "zookeeper_secret is no text, or empty"),
        ('{"redis_password": null}', "redis_password is no text"),
    ],
)
def test_what_is_wrong_in_it_is_named_without_any_value(tmp_path: Path, text: str, said: str):
    with pytest.raises(ConfigError, match=said) as error:
        read_secrets(file_with(tmp_path, text))
    said_of_it = str(error.value).replace(str(tmp_path), "")  # the folder's name has numbers, too
    assert "hidden" not in said_of_it and "17" not in said_of_it


def test_a_file_that_is_not_there_or_no_file_is_refused_with_a_remedy(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"No such file.*leeward\.secrets\.file.*LEEWARD_SECRETS"):
        read_secrets(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_secrets(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_secrets(tmp_path / "pipe")


def test_a_configuration_names_the_file_or_there_are_no_secrets(tmp_path: Path):
    path = file_with(tmp_path, FULL.to_json())
    assert secrets_of({"leeward.secrets.file": str(path)}) == FULL
    assert secrets_of({}) == NO_SECRETS
    with pytest.raises(ConfigError, match=r"leeward\.secrets\.file is 5"):
        secrets_of({"leeward.secrets.file": 5})


def test_a_service_uses_zookeepers_secret_only_if_the_tasks_know_it(tmp_path: Path):
    path = file_with(tmp_path, FULL.to_json())
    here = Addresses(nimbus=["n:1"], secrets=path)
    assert secrets_for({"leeward.secrets.file": "/on/each/node.json"}, here) == FULL
    assert secrets_for({}, here).zookeeper_secret == ""
    assert secrets_for({}, here).redis_password == FULL.redis_password
    assert secrets_for({"leeward.secrets.file": str(path)}, Addresses(nimbus=["n:1"])) == FULL


def test_no_text_of_the_secrets_shows_one():
    assert repr(FULL) == str(FULL) == "Secrets()"


def test_the_client_of_redis_gets_user_and_password():
    assert FULL.redis_login() == {"username": "app", "password": "p/w:1"}
    assert Secrets(redis_password="x").redis_login() == {"password": "x"}
    assert NO_SECRETS.redis_login() == {}


@pytest.mark.parametrize(
    "url",
    ["redis://:hidden@h:1/0", "redis://user:hidden@h:1/0", "redis://:hidden@[h", "redis://h/0?db=1&password=hidden"],
)
def test_an_address_with_a_password_is_refused_and_not_shown(url: str):
    with pytest.raises(ConfigError, match=r"leeward\.redis\.url .*redis_password.*leeward\.secrets\.file") as error:
        check_no_password({"leeward.redis.url": url})
    assert "hidden" not in str(error.value)


def test_other_addresses_and_settings_are_not_refused():
    check_no_password({"leeward.redis.url": "redis://h:1/0", "topology.workers": 3, "other": "x://:y@z"})
    refuse_password("--redis", None)
    with pytest.raises(ConfigError, match=r"leeward\.rabbitmq\.url .*rabbitmq_password"):
        check_no_password({"leeward.rabbitmq.url": "amqp://u:hidden@h/"})
    assert without_password("redis://user@h:1/0") == "redis://user@h:1/0"


def test_the_log_of_zookeepers_client_does_not_show_the_secret(caplog: pytest.LogCaptureFixture):
    """kazoo logs each request at level DEBUG, also the one that authenticates."""
    logger = client("127.0.0.1:1", secrets=FULL).logger
    with caplog.at_level(logging.DEBUG, logger="kazoo"):
        logger.debug("Sending request(xid=%s): %s", -4, Auth(0, "digest", FULL.zookeeper_login()))
        logger.debug("Sending request(xid=%s): %s", 1, "other")
    assert [record.getMessage() for record in caplog.records] == ["Sending request(xid=1): other"]


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "run", "slices", "--redis", "redis://:hidden@127.0.0.1:1/0"],
        ["status", "query1", "--nimbus", "127.0.0.1:1", "--redis", "redis://:hidden@127.0.0.1:1/0"],
    ],
)
def test_commands_refuse_a_password_among_their_arguments(words: list[str]):
    done = CliRunner().invoke(_build(), words)
    assert done.exit_code == 2
    assert "error: --redis is 'redis://:***@127.0.0.1:1/0'" in done.output and "LEEWARD_SECRETS" in done.output
    assert "hidden" not in done.output


@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_replay_takes_the_password_from_the_secrets_file(tmp_path: Path, monkeypatch, by: str):
    seen = []
    monkeypatch.setattr("leeward.replay.run.replay", lambda *_, secrets, **__: seen.append(secrets) or FINISHED)
    path = file_with(tmp_path, FULL.to_json())
    words = ["replay", "run", "slices", "--redis", "redis://127.0.0.1:1/0", "--quiet"]
    if by == "variable":
        monkeypatch.setenv("LEEWARD_SECRETS", str(path))
    else:
        words += ["--secrets", str(path)]
    done = CliRunner().invoke(_build(), words)
    assert done.exit_code == 0, done.output
    assert seen == [FULL]
