"""The set-up scripts' own rules; that they install everything is shown by whoever runs the tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMMON = Path(__file__).parents[2] / "scripts" / "common.sh"


def step(folder: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """A step with these commands, in a copy of the scripts: it writes beside them."""
    (folder / "scripts").mkdir()
    shutil.copy(COMMON, folder / "scripts")
    script = f"source scripts/common.sh\nbuild() {{\n{commands}\n}}\nstep 'the jars' build\necho went on"
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=30)


def test_a_step_fails_with_the_first_of_its_commands_that_does(tmp_path):
    done = step(tmp_path, "echo 'cannot find symbol'\nfalse\ntouch copied")
    assert done.returncode == 1 and not (tmp_path / "copied").exists()
    assert "the jars" in done.stdout and "FAILED" in done.stdout and "went on" not in done.stdout
    assert "cannot find symbol" in done.stderr and "the-jars.log" in done.stderr


def test_after_a_step_that_is_done_the_script_goes_on(tmp_path):
    done = step(tmp_path, "touch copied")
    assert done.returncode == 0 and done.stdout.endswith("went on\n") and (tmp_path / "copied").exists()
