"""The transport's use of Fabric, with Fabric's operations replaced; tests/deploy has the real ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def way(monkeypatch):
    """A transport with sudo, and the calls that Fabric gets."""
    import fabric.api
    from fabric.exceptions import CommandTimeout, NetworkError

    from leeward.deploy import over_fabric
    from leeward.deploy.inventory import Host, Inventory, Role

    host = Host(name="h", address="me@h", roles=frozenset(Role), storm_home="/opt/storm", folder="/opt/leeward")
    calls: list[tuple] = []

    class Done(str):
        return_code, stderr = 0, ""

    def run(command, **options):
        calls.append(("run", fabric.api.env.host_string, command, options))
        if "gone" in command:
            raise NetworkError("Timed out trying to connect to h")
        if "hangs" in command:
            raise CommandTimeout(options["timeout"])
        done = Done("/tmp/private" if command == "mktemp -d" else "said")
        if "fails" in command:
            done.return_code, done.stderr = 3, "first\nlast\n"
        return done

    def put(source, path, **options):
        calls.append(("put", source.read(), path, options))

    monkeypatch.setattr(fabric.api, "run", run)
    monkeypatch.setattr(fabric.api, "put", put)
    monkeypatch.setattr(over_fabric, "_notice_loss", lambda host: None)
    inventory = Inventory(hosts=(host,), redis="redis://d", sudo=True, user="storm")
    return over_fabric.OverFabric(inventory), over_fabric.OverFabric(replace(inventory, sudo=False)), host, calls


def test_scripts_are_run_by_sudo_if_the_inventory_says_so(way):
    with_sudo, without, host, calls = way
    assert with_sudo.run(host, "echo 'a b'") == "said"
    assert without.run(host, "echo 'a b'") == "said"
    assert [call[1:3] for call in calls] == [
        ("me@h", """sudo -n sh -c 'echo '"'"'a b'"'"''"""), ("me@h", """sh -c 'echo '"'"'a b'"'"''"""),
    ]  # fmt: skip


def test_a_file_goes_by_a_private_folder_with_sudo(way):
    with_sudo, _, host, calls = way
    with_sudo.put(host, b"secret", "/opt/x")
    assert [call[2] for call in calls] == [
        "mktemp -d", "/tmp/private/file", "sudo -n sh -c 'cat /tmp/private/file > /opt/x'", "rm -rf /tmp/private",
    ]  # fmt: skip
    assert calls[1][1] == b"secret"


def test_a_script_that_fails_and_a_host_that_is_gone_are_told_with_the_host(way):
    from leeward.deploy.errors import HostError, LostHostError

    _, without, host, _ = way
    with pytest.raises(HostError, match=r"^host h: first / last$") as caught:
        without.run(host, "fails")
    assert not isinstance(caught.value, LostHostError)
    with pytest.raises(HostError, match=r"^host h: its command has not ended in 3 s\.$"):
        without.run(host, "hangs", patience_s=3.0)
    with pytest.raises(LostHostError, match=r"^host h \(me@h\): Timed out trying to connect to h\.$"):
        without.run(host, "gone")
