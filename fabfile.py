"""Tasks for `fab` (the Fabric 1 API that streamparse ships) and streamparse's hook before a submission."""

from __future__ import annotations

from pathlib import Path

from fabric.api import task

from leeward.deploy.tasks import aborting, deploy, deploy_status, pre_submit, rollback  # noqa: F401

OUT = Path("out/cluster")


@task
def jar(out="build/topology.jar", src="src"):
    """Build the topology jar: fab jar[:out=build/topology.jar,src=src]"""
    from leeward.cli.jar import build

    with aborting():
        print(f"{out}: {build(Path(out), Path(src))} files")


@task
def cluster_up(dir=OUT, base_port=6600, supervisors=5, slots=2):
    """Start a local cluster: fab cluster_up[:dir=out/cluster,base_port=6600]"""
    from leeward.local import ClusterSpec, LocalCluster

    with aborting():
        spec = ClusterSpec(dir=Path(dir), base_port=int(base_port), supervisors=int(supervisors), slots=int(slots))
        LocalCluster(spec).up(print)


@task
def cluster_status(dir=OUT):
    """Daemons, nodes and topologies of a local cluster."""
    from leeward.cli.cluster import print_status
    from leeward.local import LocalCluster
    from leeward.local.status import observe

    with aborting():
        print_status(observe(LocalCluster.attach(Path(dir))))


@task
def cluster_down(dir=OUT):
    """End a local cluster, also after a crash."""
    from leeward.local import end_cluster

    with aborting():
        print(f"{end_cluster(Path(dir))} processes ended")
