"""After a run of pytest that failed: run what failed once more, alone, and say which tests are flaky.

    python scripts/flaky.py [pytest options]

A test that fails again is a failure. A test that passes now was starved of the processor or is flaky: it is printed,
and the run passes once. A test that was flaky before (`tests/flaky.txt`, checked in) fails the run: mend it. Exit
code as pytest's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = ROOT / "tests/flaky.txt"
CACHE = ROOT / ".pytest_cache/v/cache/lastfailed"


def known() -> set[str]:
    """Tests that were flaky before, by node id."""
    lines = KNOWN.read_text().splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def judge(failed: list[str], again: set[str], before: set[str]) -> tuple[int, list[str]]:
    """(exit code, lines to print) for tests that failed, those that fail again, and those flaky before. Pure."""
    passed = [name for name in failed if name not in again]
    lines = [f"FLAKY {name}: failed in the whole run, passed in one of its own" for name in passed]
    seen = [name for name in passed if name in before]
    lines += [f"FLAKY BEFORE {name}: mend it (tests/flaky.txt)" for name in seen]
    if passed and not seen:
        lines.append("Write a line for each into tests/flaky.txt, so that the next time fails the run.")
    return (1 if again or seen else 0), lines


def main(options: list[str]) -> int:
    if not CACHE.exists():
        print("no record of failed tests: the run itself failed", file=sys.stderr)
        return 1
    failed = sorted(json.loads(CACHE.read_text()))
    done = subprocess.run(["pytest", "-q", *options, *failed], cwd=ROOT)
    again = set(json.loads(CACHE.read_text())) if done.returncode and CACHE.exists() else set()
    if done.returncode not in (0, 1):
        return done.returncode
    code, lines = judge(failed, again & set(failed), known())
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
