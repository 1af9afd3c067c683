"""What scripts/flaky.py makes of tests that failed once."""

from __future__ import annotations

import pytest

from tests.helpers.scripts_loaded import script

REPORT = """<testsuites><testsuite>
<testcase classname="tests.cluster.test_a" name="test_b[down]">
  <failure message="no Redis&#10;more">trace</failure></testcase>
<testcase classname="tests.cluster.test_a.TestC" name="test_d"><error message="set-up">trace</error></testcase>
<testcase classname="tests.cluster.test_a" name="test_e"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("again", "before", "code", "words"),
    [
        (set(), set(), 0, ["FLAKY a", "FLAKY b", "Write a line"]),
        ({"a"}, set(), 1, ["FLAKY b"]),
        (set(), {"b"}, 1, ["FLAKY a", "FLAKY b", "FLAKY BEFORE b"]),
        ({"a", "b"}, {"b"}, 1, []),
    ],
)
def test_a_test_that_passes_alone_is_flaky_and_fails_the_run_the_second_time(again, before, code, words):
    got, lines = script("flaky").judge(["a", "b"], again, before)
    assert got == code
    assert all(any(line.startswith(word) for line in lines) for word in words) and bool(lines) == bool(words)


def test_the_reason_of_the_first_failure_is_found_by_node_id():
    flaky = script("flaky")
    why = flaky.reasons(REPORT)
    assert why[flaky.reported("tests/cluster/test_a.py::test_b[down]")] == "no Redis"
    assert why[flaky.reported("tests/cluster/test_a.py::TestC::test_d")] == "set-up"
    assert len(why) == 2


def test_failures_of_runs_before_are_left_out():
    flaky = script("flaky")
    this_run = ["tests/cluster/test_a.py::TestC::test_d", "tests/cluster/test_a.py::test_b[down]"]
    before = ["tests/cluster/test_a.py::test_e", "tests/cluster/test_gone.py::test_b"]
    assert flaky.of_this_run([*this_run, *before, "tests/unit/test_broken.py"], flaky.reasons(REPORT)) == [
        *this_run,
        "tests/unit/test_broken.py",
    ]
