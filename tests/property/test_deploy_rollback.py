"""Rollouts by the steps' own scripts on real files: a failure at any step, a break at any step, a rollback."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward.deploy.errors import HostError, RollBackFailedError, RolledBackError
from leeward.deploy.shell import Shell, restarts
from leeward.deploy.steps import Prune, Restart, Restore, Switch
from tests.helpers.deploy_hosts import Cluster, artifacts_of

pytestmark = pytest.mark.long

ARTIFACTS = st.builds(
    artifacts_of, st.integers(1, 2), plugin=st.integers(1, 2), secrets=st.integers(0, 1), runtime=st.integers(0, 1)
)


class Failing(Shell):
    """Fails at the step of this number, before or after it is done."""

    at, after, error = -1, False, HostError("the test says so")

    def _take(self, step, host):
        self.at -= 1
        if self.at == 0 and not self.after:
            raise self.error
        super()._take(step, host)
        if self.at == 0 and self.after:
            raise self.error


def failing(cluster: Cluster, at: int, after: bool, error: BaseException) -> Failing:
    shell = Failing(cluster.inventory, cluster.way, cluster.health, cluster.lines.append)
    shell.at, shell.after, shell.error = at, after, error
    return shell


@given(before=st.none() | ARTIFACTS, wanted=ARTIFACTS, at=st.integers(1, 40), after=st.booleans())
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_a_failure_at_any_step_leaves_every_file_as_it_was(before, wanted, at, after):
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        if before is not None:
            cluster.deploy(before)
        was, ran = cluster.files(), cluster.service_pid() is not None
        plan = cluster.deploy(wanted, dry_run=True)
        assert cluster.files() == was
        if at <= len(plan.steps) and not isinstance(plan.steps[at - 1], Prune):
            with pytest.raises(RolledBackError):
                failing(cluster, at, after, HostError("no")).deploy(cluster.inventory.hosts, wanted, dry_run=False)
            assert pruned_alike(cluster.files(), was)
            assert (cluster.service_pid() is not None) == ran
        assert cluster.deploy(wanted).lines == plan.lines
        assert cluster.deploy(wanted).steps == ()


def pruned_alike(now: dict[str, str], was: dict[str, str]) -> bool:
    """The same files; those that no way back led to may be gone, as a late step removes them."""
    return now.items() <= was.items() and all(".kept-" in path or "/venvs/" in path for path in was.keys() - now)


@given(before=st.none() | ARTIFACTS, wanted=ARTIFACTS, at=st.integers(1, 40), after=st.booleans())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_a_rollout_that_broke_off_is_finished_by_the_next_and_can_be_taken_back(before, wanted, at, after):
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        if before is not None:
            cluster.deploy(before)
        was, restarted = cluster.managed(), cluster.restarts
        plan = cluster.deploy(wanted, dry_run=True)
        broken = failing(cluster, at, after, KeyboardInterrupt())
        if at <= len(plan.steps):
            with pytest.raises(KeyboardInterrupt):
                broken.deploy(cluster.inventory.hosts, wanted, dry_run=False)
        cluster.deploy(wanted)
        assert cluster.deploy(wanted).steps == ()
        if any(isinstance(step, Restart) and step.host == "nimbus" for step in restarts(plan)):
            assert cluster.restarts > restarted
        if any(isinstance(step, Switch) for step in plan.steps):
            cluster.shell.rollback(cluster.inventory.hosts, dry_run=False)
            assert cluster.managed() == was


def test_a_file_that_could_not_be_put_back_keeps_the_copy_of_what_it_was(tmp_path):
    class Stuck(Failing):
        """The last restart of the rollout fails, and then one file cannot be put back."""

        def _take(self, step, host):
            if isinstance(step, Restore) and step.path.endswith("/storm.yaml"):
                raise HostError("no space left on device")
            super()._take(step, host)

    with Cluster(tmp_path) as cluster:
        was = cluster.files()
        plan = cluster.deploy(artifacts_of(1), dry_run=True)
        at = next(number for number, step in enumerate(plan.steps, 1) if isinstance(step, Restart))
        shell = Stuck(cluster.inventory, cluster.way, cluster.health, cluster.lines.append)
        shell.at, shell.error = at, HostError("it does not start")
        with pytest.raises(RollBackFailedError, match="no space left on device"):
            shell.deploy(cluster.inventory.hosts, artifacts_of(1), dry_run=False)
        changed = {path for path, digest in was.items() if cluster.files().get(path) != digest}
        assert changed and all(path.endswith("/storm.yaml") for path in changed)
        kept = {path.partition(".kept-")[0] for path in cluster.files() if ".kept-" in path}
        assert changed <= kept, "a rollback finds them"


def test_storm_s_own_file_keeps_its_mode(tmp_path):
    with Cluster(tmp_path) as cluster:
        files = [path for path in tmp_path.rglob("conf/storm.yaml") if path.is_file()]
        assert files
        for path in files:
            path.chmod(0o640)
        cluster.deploy(artifacts_of(1))
        assert {path.stat().st_mode & 0o777 for path in files} == {0o640}
