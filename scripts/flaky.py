"""After a run of pytest that failed: run what failed once more, alone, and say which tests are flaky.

    python scripts/flaky.py [pytest options]

They run in the order of the whole run, as later tests of a file may rest on what earlier ones did. A test that fails
again is a failure. A test that passes now was starved of the processor or is flaky: it is printed with the first
failure's reason, and the run passes once. A test that was flaky before (`tests/flaky.txt`, checked in) fails the run:
mend it. Exit code as pytest's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = ROOT / "tests/flaky.txt"
CACHE = ROOT / ".pytest_cache/v/cache/lastfailed"
REPORT = ROOT / ".pytest_cache/run.xml"  #: of the whole run, by --junit-xml


def known() -> set[str]:
    """Tests that were flaky before, by node id."""
    lines = KNOWN.read_text().splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def reasons(report: str) -> dict[str, str]:
    """First line of why, by `tests.folder.test_file.name`, of each test in a JUnit report that failed."""
    found = {}
    for case in ET.fromstring(report).iter("testcase"):
        for problem in [*case.iter("failure"), *case.iter("error")]:
            why = problem.get("message", "").strip().partition("\n")[0]
            found.setdefault(f"{case.get('classname')}.{case.get('name')}", why)
    return found


def reported(name: str) -> str:
    """A node id as JUnit reports name it."""
    path, _, test = name.partition("::")
    return f"{path.removesuffix('.py').replace('/', '.')}.{test.replace('::', '.')}"


def of_this_run(recorded: Iterable[str], why: Mapping[str, str]) -> list[str]:
    """Of the failures that pytest has on record those of this run's report, by node id; others are of runs before.

    A file that cannot be collected has no test in a report, and counts. Pure.
    """
    return sorted(name for name in recorded if "::" not in name or reported(name) in why)


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
    why = reasons(REPORT.read_text()) if REPORT.exists() else {}
    failed = of_this_run(json.loads(CACHE.read_text()), why)
    if not failed:
        print("no failed test in the report: the run itself failed", file=sys.stderr)
        return 1
    files = sorted({name.partition("::")[0] for name in failed})
    done = subprocess.run(["pytest", "-q", "--last-failed", *options, *files], cwd=ROOT)
    again = set(json.loads(CACHE.read_text())) if done.returncode and CACHE.exists() else set()
    if done.returncode not in (0, 1):
        return done.returncode
    code, lines = judge(failed, again & set(failed), known())
    print("\n".join([f"failed first: {name}: {why.get(reported(name), '')[:200]}" for name in failed] + lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
