"""Size, import time and memory of a worker's Python environment: `python tests/bench/footprint.py`.

Builds the wheel, installs `leeward[runtime]` and stock streamparse (the locked releases of both) into two empty
environments, and imports in turn what a component imports. Prints and writes `out/bench/footprint.json`: size on disk,
and over all runs the least and median time of an import, and the resident memory after it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"
SYSTEMS = {
    "nothing": ([], "sys"),
    "streamparse": (["streamparse", "setuptools<81"], "streamparse"),
    "leeward[runtime]": (["leeward[runtime]"], "leeward.runtime"),
}
MEASURE = """
import sys, time
start = time.perf_counter()
import {module}
took = time.perf_counter() - start
pages = int(open("/proc/self/statm").read().split()[1])
print(took * 1000, pages * 4096 / 1e6)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="imports of each, in turn")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        result = measured(Path(folder), runs)
    print(f"{'':18}{'MB on disk':>12}{'import, ms':>12}{'(median)':>10}{'MB resident':>13}")
    for name, row in result.items():
        print(
            f"{name:18}{row['disk_mb']:12.1f}{row['import_ms_min']:12.0f}{row['import_ms_median']:10.0f}"
            f"{row['resident_mb']:13.1f}"
        )
    out = ROOT / "out" / "bench" / "footprint.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


def measured(folder: Path, runs: int) -> dict[str, dict[str, float]]:
    """System -> its figures."""
    wheels = folder / "wheels"
    subprocess.run(["make", "-s", "wheel", f"WHEELS={wheels}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    locked = folder / "constraints.txt"
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line))
    for name, (packages, _) in SYSTEMS.items():
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder / name], check=True)
        if packages:
            install = [UV, "pip", "install", "--quiet", "--link-mode", "copy", "-c", locked, "--find-links", wheels]
            environment = os.environ | {"VIRTUAL_ENV": str(folder / name)}
            subprocess.run([*install, *packages], check=True, env=environment)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in SYSTEMS}
    for turn in range(runs + 1):
        for name, (_, module) in SYSTEMS.items():
            sample = imported(folder / name / "bin" / "python", module)
            if turn:  # the first one compiles
                samples[name].append(sample)
    return {
        name: {
            "disk_mb": sum(path.lstat().st_size for path in (folder / name / "lib").rglob("*.*")) / 1e6,
            "import_ms_min": min(took for took, _ in samples[name]),
            "import_ms_median": statistics.median(took for took, _ in samples[name]),
            "resident_mb": statistics.median(resident for _, resident in samples[name]),
        }
        for name in SYSTEMS
    }


def imported(python: Path, module: str) -> tuple[float, float]:
    """(ms, MB resident) of one process that imports the module."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", MEASURE.format(module=module)],
        cwd="/", env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    took, resident = map(float, done.stdout.split())
    return took, resident


if __name__ == "__main__":
    main()
