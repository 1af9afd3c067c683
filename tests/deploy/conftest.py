"""One set of machines for all tests of rollouts. It needs root, sshd and network namespaces (`make test-deploy`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.network import Machines
from tests.deploy.project import Site
from tests.deploy.storm import Storm


@pytest.fixture(scope="package")  # six machines with Storm would run beside the tests of other folders
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Storm runs, and no rollout has been."""
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    if java := os.environ.get("JAVA_HOME"):
        path = f"{java}/bin:{path}"
    with Machines(tmp_path_factory.mktemp("machines"), path) as machines:
        storm = Storm(machines)
        found = Site(machines, storm)
        storm.lay_out()
        found.lay_out()
        storm.start()
        yield found
