"""Submit a topology file with streamparse's own `sparse submit`: no ssh, no Leiningen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from leeward.control.registry import STORES, where
from leeward.core.errors import ConfigError
from leeward.core.secrets import ADDRESS_KEYS, refuse_password
from leeward.core.topology_conf import STORE, check_conf
from leeward.local.environment import Environment, choose, choose_topology, read_config
from leeward.local.errors import NameTakenError, SubmitError
from leeward.local.nimbus import fetch_summary


def submit_topology(
    topology: str | None,
    *,
    name: str | None = None,
    nimbus: str | None,
    jar: Path,
    project: Path,
    options: Sequence[str] = (),
    workers: int | None = None,
    config: Path | None = None,
    environment_name: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Run `sparse submit` in the project's folder; returns its output.

    `topology` is the name of a file in the project's folder of topologies without ".py", `name` its name on the
    cluster, `options` are "key=value". Without `environment_name` it goes to `nimbus` (host:port), which the project
    need not know; with it to that environment's Nimbus, through ssh if it says so.
    Raises NameTakenError, ConfigError for bad input, SubmitError.
    """
    file = config or project / "config.json"
    document = read_config(file)
    topology = choose_topology(topology, project / document.get("topology_specs", "topologies/"))
    target = choose(document, environment_name, nimbus)
    command = [str(Path(sys.executable).parent / "sparse"), "submit", "-n", topology, "-e", target.name]
    command += ["-j", str(jar.absolute())]
    command += ["-N", name] if name else []
    command += ["-w", str(workers)] if workers else []
    for option in options:
        check_option(option)
        command += ["-o", _located(option)]
    if not target.ssh:
        check_name_free(name or topology, target.nimbus)
    # LEIN_ROOT lets root run sparse; its ssh library warns
    variables = dict(environment) | {"LEIN_ROOT": "1", "PYTHONWARNINGS": "ignore"}
    if environment_name is None:
        variables["STREAMPARSE_NIMBUS"] = target.nimbus  # overrides config.json's
    with _config_file(target, file) as written:
        done = subprocess.run(
            [*command, "--config", str(written.absolute())],
            cwd=project, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    if done.returncode != 0:
        lines = "\n".join(done.stdout.splitlines()[-15:])
        raise SubmitError(f"sparse submit: exit code {done.returncode}.\n{lines}\n", remedy="Mend what it names.")
    return done.stdout


@contextmanager
def _config_file(target: Environment, file: Path) -> Iterator[Path]:
    """The project's own, or one for as long as the submission takes."""
    if target.config is None:
        yield file
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as written:
        json.dump(target.config, written)
        written.flush()
        yield Path(written.name)


def check_option(option: str) -> None:
    """Raises ConfigError for `key=value` that no topology may have: a password, an unknown key, a wrong speed."""
    key, equals, value = option.partition("=")
    if not equals:
        raise ConfigError(f"option: {option!r} has no value.", remedy="Write -o key=value.")
    check_no_password({key: value})
    check_conf({key: _read(value)})


def _read(value: str) -> object:
    """The value as the topology will have it: a number, list or map where it is one, else text."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def _located(option: str) -> str:
    """With the name of a store as `module:Class`, as workers find it. Raises ConfigError for an unknown one."""
    key, _, value = option.partition("=")
    return f"{key}={where(value, STORES)}" if key == STORE.name and value != "redis" else option


def check_no_password(settings: Mapping[str, object]) -> None:
    """Raise ConfigError if an address in these settings of a topology holds a password: Nimbus shows it to all."""
    for key, secret in ADDRESS_KEYS.items():
        refuse_password(key, settings.get(key), secret)


def check_name_free(name: str, nimbus: str) -> None:
    """Raise NameTakenError if a topology of this name runs, SubmitError if Nimbus does not answer."""
    host, _, port = nimbus.rpartition(":")
    summary = fetch_summary(host, int(port))
    if summary is None:
        raise SubmitError(f"nimbus: {nimbus} does not answer.", remedy="Start it: leeward cluster up.")
    for other, status, *_ in summary.topologies:
        if other == name:
            raise NameTakenError(
                f"name: a topology {name!r} exists already on {nimbus} ({status}).",
                remedy="Give another name (leeward submit --name), or kill that one (sparse kill) and wait.",
            )
