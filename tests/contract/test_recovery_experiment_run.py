"""The run of agiledart-recovery on real processes, small: states come back, or their loss is told."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, random, sys
from contextlib import ExitStack
from pathlib import Path
from leeward.cli import _recovery_live as live
from leeward.policies.agiledart.experiments.recovery import Scale, conclude

scale = Scale(size=1 << 20, download=50e6, runs=1, failures=(1, 8), ring_size=200_000, ring_download=10e6)
measured = {}
for name, measure in (("state", live._measure_state), ("ring", live._measure_ring)):
    (folder := Path(sys.argv[1]) / name).mkdir()
    with ExitStack() as stack:
        measured |= measure(scale, random.Random(1), folder, stack)
conclude(scale, measured)
print(json.dumps(measured))
"""


def test_states_come_back_or_their_loss_is_told(tmp_path):
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["wrong"] == 0.0
    assert all(measured[name] == 1.0 for name in ("k right", "forged right", "loss told", "forged loss told"))
    assert all(measured[name] > 0 for name in ("ours", "whole", "central", "written", "1 at once", "8 at once"))
