"""In CI a skipped test is a failed test, unless it needs hardware or the folder ../shared."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The pipeline tries the same examples every time; whoever works here, and the slow lane, tries new ones. The time
# of an example says nothing: other tests run beside it.
settings.register_profile("here", deadline=None)
settings.register_profile("pipeline", derandomize=True, deadline=None)
settings.load_profile("pipeline" if os.environ.get("CI") else "here")

ALLOWED = ("needs hardware", "needs ../shared")


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure when the environment variable CI is set."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped, and CI allows no skips: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    forbid_skip(report)
    return report
