"""The setting `network`: a file that is read, or refused by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.adapters.network_file import network_named
from leeward.core.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "storm_conf" / "networks" / "three_sites.toml"


def test_the_named_file_is_read_and_none_gives_none():
    found = network_named(str(EXAMPLE))
    assert found is not None and found.nimbus.id == "cloud"
    assert network_named("") is None


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("= 1", "is no TOML"), ("sites = 1", "sites")])
def test_a_wrong_file_is_named(tmp_path: Path, text: str | None, said: str):
    file = tmp_path / "net.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=f"net.toml.*{said}"):
        network_named(str(file))
