"""Submit a topology file with streamparse's own `sparse submit`: no ssh, no Leiningen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.core.secrets import ADDRESS_KEYS, refuse_password
from leeward.core.topology_conf import check_conf
from leeward.local.errors import NameTakenError, SubmitError
from leeward.local.nimbus import fetch_summary


def submit_topology(
    topology: str,
    *,
    name: str | None = None,
    nimbus: str,
    jar: Path,
    project: Path,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Run `sparse submit` in the project's folder against this Nimbus (host:port); returns its output.

    `topology` is the name of a file in topologies/ without ".py", `name` what it shall be called on the
    cluster, `options` are "key=value". Raises NameTakenError, ConfigError for an unknown file, SubmitError.
    """
    if not (project / "topologies" / f"{topology}.py").exists():
        known = ", ".join(sorted(path.stem for path in (project / "topologies").glob("*.py"))) or "none"
        raise ConfigError(f"topology: no topologies/{topology}.py in {project}.", remedy=f"There are: {known}.")
    command = [str(Path(sys.executable).parent / "sparse"), "submit", "-n", topology, "-e", "local"]
    command += ["-j", str(jar.absolute())]
    command += ["-N", name] if name else []
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise ConfigError(f"option: {option!r} has no value.", remedy="Write -o key=value.")
        check_no_password({key: value})
        check_conf({key: value})
        command += ["-o", option]
    check_name_free(name or topology, nimbus)
    # STREAMPARSE_NIMBUS overrides config.json's Nimbus; LEIN_ROOT lets root run sparse; its ssh library warns
    variables = dict(environment) | {
        "STREAMPARSE_NIMBUS": nimbus,
        "LEIN_ROOT": "1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        command, cwd=project, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        lines = "\n".join(done.stdout.splitlines()[-15:])
        raise SubmitError(f"sparse submit: exit code {done.returncode}.\n{lines}\n", remedy="Mend what it names.")
    return done.stdout


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
