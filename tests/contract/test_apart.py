"""A function in a process of its own: its value or error comes back, it ends in time, and nothing of it is left."""

from __future__ import annotations

import os
import pickle
import threading
import time
from pathlib import Path

import pytest

from leeward.adapters.apart import NICE, call_apart
from leeward.cli._beside import EXPLAIN
from leeward.core.errors import ClusterRefusedError, NotReadyError
from leeward.core.settings import settings_from
from leeward.policies.edrp.exact.search import warm_up
from tests.helpers.control_views import view

ROOT = Path(__file__).parents[2]
#: This module, as the other process imports it.
HERE = "tests.contract.test_apart"
LONG_S = 100.0


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))


def who(more: str) -> tuple[int, int, str]:
    """Process, niceness, and what it was given."""
    print("a solver prints")
    return os.getpid(), os.nice(0), more


def refuses(text: str) -> None:
    raise ClusterRefusedError(text, remedy="Start it.")


def fails() -> None:
    raise ZeroDivisionError("of ours")


def writes_and_hangs(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    threading.Event().wait()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_value_comes_from_another_process_that_lets_others_go_first(capfd):
    pid, niceness, more = call_apart(f"{HERE}:who", ("x",), {}, limit_s=LONG_S)
    assert pid != os.getpid() and niceness >= min(19, os.nice(0) + NICE) and more == "x"
    assert "a solver prints" not in capfd.readouterr().out


def test_an_error_made_on_purpose_is_raised_here():
    with pytest.raises(ClusterRefusedError, match=r"Redis is away\. Start it\.") as raised:
        call_apart(f"{HERE}:refuses", ("Redis is away.",), {}, limit_s=LONG_S)
    assert raised.value.remedy == "Start it."


def test_a_fault_of_ours_is_logged_and_raised(caplog):
    with pytest.raises(RuntimeError, match="fails"):
        call_apart(f"{HERE}:fails", (), {}, limit_s=LONG_S)
    assert "ZeroDivisionError: of ours" in caplog.text


@pytest.mark.parametrize("why", ["its limit", "the end of the service"])
def test_it_is_ended_after_its_limit_and_with_the_service(why, tmp_path):
    file = tmp_path / "pid"
    over = (lambda: False) if why == "its limit" else file.exists
    began = time.monotonic()
    with pytest.raises(NotReadyError, match="no answer after" if why == "its limit" else "the service ends"):
        call_apart(f"{HERE}:writes_and_hangs", (str(file),), {}, limit_s=8.0 if why == "its limit" else 120.0,
                   over=over)  # fmt: skip
    assert time.monotonic() - began < LONG_S
    if file.exists():
        assert is_gone(int(file.read_text()))


@pytest.mark.timeout(600)
def test_a_view_is_explained_and_planned_for_apart():
    """Everything that the service sends is pickled, and all that these functions import is there."""
    warm_up()  # as make setup does
    chosen = settings_from({"edrp": {"r_max_s": 0.2}})
    seen = view(rate=120.0, work=(2, 3))
    asked = {"method": "auto", "time_limit_s": 30.0, "seed": 0}
    document = call_apart(EXPLAIN, (seen, chosen), asked, limit_s=LONG_S)
    assert document["status"] == "optimal" and document["alternatives"]
    from leeward.control.dry_run import no_letters

    options = {"now": 1.0, "frozen": False, "post": no_letters}
    plan = call_apart("leeward.control.dry_run:dry_run", (seen, chosen), options, limit_s=LONG_S)
    assert plan["topology"] == "app" and plan["policy"] == "edrp"
    assert pickle.loads(pickle.dumps(plan)) == plan
