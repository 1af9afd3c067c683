"""Tasks for `fab` (the Fabric 1 API that streamparse ships) and streamparse's hook before a submission."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

from fabric.api import abort, task

from leeward.core.errors import LeewardError
from leeward.deploy.tasks import deploy, deploy_status, rollback  # noqa: F401  (tasks of this file)

OUT = Path("out/cluster")


@contextmanager
def aborting():
    """Turn an expected error into Fabric's abort."""
    try:
        yield
    except LeewardError as error:
        abort(str(error))


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


def pre_submit(topology_name, env_name, env_config, options):
    """Called by `sparse submit`: refuse passwords, unknown keys and a taken name, before anything is uploaded."""
    from streamparse.util import get_nimbus_host_port, is_ssh_for_nimbus

    from leeward.core.topology_conf import check_conf
    from leeward.local.submit import check_name_free, check_no_password

    with aborting():
        check_no_password(options)
        check_conf(options)
    if not is_ssh_for_nimbus(env_config):
        host, port = get_nimbus_host_port(env_config)
        with aborting():
            check_name_free(topology_name, f"{host}:{port}")
