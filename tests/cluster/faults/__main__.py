"""python -m tests.cluster.faults --seed S --faults N: a fault run for people.

Prints a table by kind and writes out/faults/<seed>.json. The exit code is 0 if the output equals that of the
undisturbed run and all recoveries are within the bounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.faults.report import MEDIAN_S, RECOVERY_S, slow, table
from tests.cluster.faults.run import run, write
from tests.cluster.faults.schedule import schedule
from tests.helpers.servers import port_block

OUT = Path("out/faults")


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.faults", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the schedule and of the reconfigurations")
    parser.add_argument("--faults", type=int, default=10, help="how many")
    parser.add_argument(
        "--only", action="append", default=[], metavar="KIND", help="such as 'kill task'; repeat for more kinds"
    )
    parser.add_argument("--list", action="store_true", help="print the schedule and end")
    parser.add_argument("--keep", type=Path, help="run in this new folder, and leave logs and events there")
    arguments = parser.parse_args()
    try:
        faults = schedule(arguments.seed, arguments.faults, arguments.only)
    except ValueError as error:
        parser.error(f"--only: {error}")
    if arguments.list:
        print("\n".join(f"{fault.number:3} {fault.text}" for fault in faults))
        return 0
    start = time.monotonic()

    def report(line: str) -> None:
        print(f"{time.monotonic() - start:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="leeward-faults-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        result = run(faults, arguments.seed, folder, port_block(), report)
    path = write(result, OUT)
    print(f"\n{table(result)}\n\n{slow(result)}\n\n{path}")
    recoveries = result.recoveries
    within = max(recoveries, default=0.0) < RECOVERY_S and (not recoveries or statistics.median(recoveries) < MEDIAN_S)
    return 0 if result.exact and within else 1


if __name__ == "__main__":
    sys.exit(main())
