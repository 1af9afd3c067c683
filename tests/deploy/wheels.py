"""A wheel of this checkout and the wheels that service and tasks need, for hosts that reach no registry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from leeward.deploy.artifacts import SERVICE_LIST, TASKS_LIST

ROOT = Path(__file__).resolve().parents[2]
#: Enough for `leeward serve --http` with a policy that solves nothing, and for the tasks. `make wheels` sends all.
NAMES = (
    "annotated-doc", "annotated-types", "anyio", "async-timeout", "click", "h11", "hiredis", "idna", "ijson", "kazoo",
    "markdown-it-py", "mdurl", "msgpack", "msgspec", "ply", "prometheus-client", "pydantic", "pydantic-core",
    "pygments", "pystorm", "pyyaml", "redis", "rich", "shellingham", "simplejson", "six", "starlette", "streamparse",
    "structlog", "thriftpy2", "typer", "typing-extensions", "typing-inspection", "uvicorn", "websockets",
)  # fmt: skip
#: Of the tasks alone. redis needs async-timeout before Python 3.11.3; its line says so to pip.
RUNTIME = (
    "async-timeout", "hiredis", "ijson", "kazoo", "msgpack", "ply", "pystorm", "redis", "simplejson", "six",
    "streamparse", "thriftpy2",
)  # fmt: skip


def requirements(names: tuple[str, ...]) -> str:
    """The part of requirements.lock with these names, hashes too."""
    chosen, keep = [], False
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if found := re.match(r"([a-z0-9-]+)(\[[a-z]+\])?==", line):
            keep = found[1] in names
        if keep and line.strip() and not line.strip().startswith("#"):
            chosen.append(line)
    return "\n".join(chosen) + "\n"


def make_wheels(folder: Path) -> Path:
    """Fill the folder once; Leeward's own wheel is always made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / SERVICE_LIST
    text = requirements(NAMES)
    if not listed.exists() or listed.read_text() != text:
        asked = folder / "asked.txt"
        asked.write_text(text)
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "-r", asked)
        asked.replace(listed)
    (folder / TASKS_LIST).write_text(requirements(RUNTIME))
    for old in folder.glob("leeward-*.whl"):
        old.unlink()
    run("uv", "build", "--wheel", "--no-build-isolation", "-q", "-o", folder, ROOT)
    return next(folder.glob("leeward-*.whl"))


def run(*command: object) -> None:
    """To its end. Raises AssertionError with the output of one that fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
