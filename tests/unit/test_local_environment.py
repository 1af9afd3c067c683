"""`leeward submit` in any streamparse project: the environment that is meant, or a sentence that says what is wrong."""

from __future__ import annotations

import json

import pytest

from leeward.core.errors import ConfigError
from leeward.local.environment import LOCAL, choose, choose_topology, read_config

QUICKSTART = {"topology_specs": "topologies/", "envs": {"prod": {"nimbus": "", "workers": []}}}


def test_a_project_without_a_local_environment_gets_one_for_the_submission():
    chosen = choose(QUICKSTART, None, "127.0.0.1:6600")
    assert (chosen.name, chosen.nimbus, chosen.ssh) == (LOCAL, "127.0.0.1:6600", False)
    assert chosen.config["envs"] == {
        LOCAL: {"nimbus": "127.0.0.1:6600", "use_ssh_for_nimbus": False, "use_virtualenv": False}
    }
    assert chosen.config["topology_specs"] == "topologies/", "the rest of the file holds"
    assert choose({}, None, "127.0.0.1:6600").config["envs"].keys() == {LOCAL}


def test_the_projects_own_local_environment_is_used_as_it_is():
    assert choose({"envs": {LOCAL: {"nimbus": "elsewhere:1"}}}, None, "127.0.0.1:6600").config is None


def test_a_named_environment_has_its_own_nimbus_and_ssh():
    config = {"envs": {"prod": {"nimbus": "storm.example"}, "lab": {"nimbus": "lab:7", "use_ssh_for_nimbus": False}}}
    assert choose(config, "prod", None)[:3] == ("prod", "storm.example:6627", True)
    assert choose(config, "lab", None)[:3] == ("lab", "lab:7", False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stage", "environment: 'stage' is not in config.json. It has prod; without -e the local cluster is used."),
        ("prod", "environment 'prod': nimbus is empty. Write the host of Nimbus in config.json."),
    ],
)
def test_an_environment_that_cannot_be_used_is_named(name, said):
    with pytest.raises(ConfigError) as caught:
        choose(QUICKSTART, name, None)
    assert str(caught.value) == said


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ("[]", "has no object 'envs'")])
def test_a_file_that_is_no_configuration(tmp_path, text, said):
    file = tmp_path / "config.json"
    with pytest.raises(ConfigError, match=r"does not exist\. Go to a streamparse project's folder"):
        read_config(file)
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_config(file)
    file.write_text(json.dumps(QUICKSTART))
    assert read_config(file) == QUICKSTART


def test_the_only_topology_needs_no_name(tmp_path):
    with pytest.raises(ConfigError, match=r"has 0\. Name one: none"):
        choose_topology(None, tmp_path)
    (tmp_path / "wordcount.py").touch()
    assert choose_topology(None, tmp_path) == "wordcount"
    (tmp_path / "other.py").touch()
    with pytest.raises(ConfigError, match=r"has 2\. Name one: other, wordcount"):
        choose_topology(None, tmp_path)
    with pytest.raises(ConfigError, match=r"no .*nope\.py\. There are: other, wordcount"):
        choose_topology("nope", tmp_path)
