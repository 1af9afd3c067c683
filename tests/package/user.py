"""A user with a wheel and nothing else, for the tests of this lane."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.doc_blocks import ROOT, blocks
from tests.helpers.servers import port_block

BASE_PORT = port_block()
UV = Path(sys.executable).parent / "uv"


class User:
    """Somebody with a wheel, an empty folder and an environment with nothing in it."""

    def __init__(self, folder: Path, wheels: Path, python: str = sys.executable) -> None:
        self.folder, self.wheels = folder, wheels
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("LEEWARD", "PYTHON", "VIRTUAL"))
        }
        self.environment = outside | {
            "PATH": f"{folder / 'env' / 'bin'}:/usr/local/bin:/usr/bin:/bin:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder / "env"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
            "UV_FIND_LINKS": str(wheels),
            "LEEWARD_BASE_PORT": str(BASE_PORT),
        }
        self.run([UV, "venv", "--quiet", "--python", python, "env"])

    def run(self, command: list[object], *, cwd: Path | None = None, exit_code: int = 0) -> str:
        """A command and what it printed, errors too."""
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd or self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400,
        )  # fmt: skip
        assert done.returncode == exit_code, f"{command}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def install(self, *packages: str, cwd: Path | None = None) -> None:
        """From the wheels and the registry, in the versions that are locked."""
        locked = self.folder / "constraints.txt"
        lines = (ROOT / "requirements.lock").read_text().splitlines()
        locked.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line))
        self.run([UV, "pip", "install", "--quiet", "-c", locked, *packages], cwd=cwd)

    def shell(self, line: str, folder: Path) -> str:
        """A line of a README, as it stands; `pip` is uv's, as the environment has none."""
        if line.startswith("pip install"):
            self.install(*line.split("#")[0].split()[2:], cwd=folder)
            return ""
        return self.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder)


@dataclass(frozen=True, slots=True)
class Said:
    """Output of the commands of a project's README, in their order."""

    lines: tuple[tuple[str, str], ...]

    def of(self, start: str) -> list[str]:
        """Of each command that starts so."""
        return [text for line, text in self.lines if line.startswith(start)]


def play(user: User, project: Path, *, storm_version: str | None = None) -> Said:
    """Every command of the project's README, as it stands but for Storm's release; checks what each is there for."""
    shell = [block.text for block in blocks(project / "README.md") if block.language == "sh"]
    lines = [line for text in shell for line in text.splitlines() if line]
    if storm_version:
        install = "leeward cluster install"
        lines = [line.replace(install, f"{install} --storm-version {storm_version}") for line in lines]
    said = Said(tuple((line, user.shell(line, project)) for line in lines))
    first, last = map(counts, said.of("python look.py"))
    assert first.keys() <= last.keys() and sum(first.values()) > 0
    assert all(last[word] >= count for word, count in first.items()), "a count went back"
    dry, *moves = said.of("leeward reconfigure")
    assert "handover" in dry
    assert [text.splitlines()[-1] for text in moves] == ["done", "done"]
    assert "words: no problems" in said.of("leeward check")[0]
    assert "3 passed" in said.of("pytest")[0]
    assert "0 processes" not in said.of("leeward cluster down")[0], "the cluster was up until the end"
    return said


def counts(table: str) -> dict[str, int]:
    """Word -> count, as look.py printed them."""
    rows = [line.split() for line in table.splitlines()]
    return {word: int(count) for count, word in rows}
