"""The part of `leeward experiment agiledart-live-deployment` at a real Nimbus: the same chains, submitted at once."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

import typer

from leeward.local import ClusterSpec, LocalCluster
from leeward.local.unmanned import unmanned
from leeward.policies.agiledart.experiments import live_deployment as study

#: Of the cluster, beside those of storm_conf/storm.yaml: an executor that nobody starts is not taken for dead, s.
SETTINGS = {"nimbus.task.launch.secs": 900}
#: Between two scheduling passes of Nimbus, as in storm_conf/storm.yaml, s.
PASS_S = 1.0
#: Topologies that Nimbus assigns before it is measured, so that its code is compiled.
WARM = 20


def measure_nimbus(scale: study.Scale, *, folder: Path, base_port: int, seed: int) -> dict[int, list[dict[str, Any]]]:
    """Topologies at once -> the document of each run. Raises LeewardError, OSError.

    A run begins at a moment drawn by chance, as Nimbus schedules at fixed times.
    """
    rng, found = Random(seed), dict[int, list[dict[str, Any]]]()
    spec = ClusterSpec(
        dir=folder, base_port=base_port, supervisors=1, slots=1, plugin=False, class_archive=False, settings=SETTINGS
    )
    with (
        LocalCluster(spec) as cluster,
        unmanned(cluster, nodes=scale.agents, slots=study.CAPACITY, operators=study.OPERATORS) as nimbus,
    ):
        typer.echo(f"Nimbus has {scale.agents} nodes", err=True)
        for concurrent, runs in ((WARM, 1), *scale.nimbus.items()):
            for number in range(runs):
                time.sleep(rng.uniform(0.0, PASS_S))
                names = [f"app-{concurrent}-{number}-{at}" for at in range(concurrent)]
                document = nimbus.deploy(names)
                nimbus.kill(names)
                if concurrent in scale.nimbus:
                    found.setdefault(concurrent, []).append(document)
                typer.echo(f"{concurrent} at once by Nimbus: {document['seconds']:.3f} s", err=True)
    return found
