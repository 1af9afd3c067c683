"""`serve --once`, `reconfigure --dry-run`, `status --wait`: look at a topology, plan, tell; change nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import Ports
    from leeward.core.model import ClusterView
    from leeward.core.settings import Chosen, Settings

Tell = Callable[[str], None]


def in_time(work: Callable[[Tell], dict[str, Any]], timeout: float) -> dict[str, Any]:
    """The result of `work`, which tells its steps. Raises NotReadyError if it takes longer than `timeout` s."""
    from leeward.core.errors import NotReadyError

    done, told, result = threading.Event(), ["connecting"], dict[str, Any]()
    failures: list[BaseException] = []

    def tell(line: str) -> None:
        told.append(line)
        typer.echo(f"{line} ...", err=True)

    def run() -> None:
        try:
            result.update(work(tell))
        except BaseException as error:  # shown by the thread that waits
            failures.append(error)
        done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(timeout):
        raise NotReadyError(
            f"no answer after {timeout:g} s; the last step was: {told[-1]}.",
            remedy="Give more --timeout.",
        )
    if failures:
        raise failures[0]
    return result


def plan_once(topology: str, addresses: Addresses, chosen: Chosen, timeout: float) -> dict[str, Any]:
    """One plan of the policy now, without leading."""
    from leeward.adapters.post import PeerPost
    from leeward.control.registry import Policies

    def work(tell: Tell) -> dict[str, Any]:
        from leeward.adapters.wiring import open_ports
        from leeward.control.loop import ask, plan_fields
        from leeward.core.learnt_told import learnt_by

        tell(f"{topology}: a plan by {chosen.service.policy}, or why there is none, within {timeout:g} s")
        policy = Policies(chosen, PeerPost).of(topology)
        if policy is None:
            return {"policy": "none"}
        with open_ports(topology, addresses, quiet=True, network=chosen.service.network) as ports:
            view = _view(topology, ports, chosen.service, tell)
            tell("planning; the first plan on a machine compiles the solver, about two minutes")
            plan = ask(policy, view, now=ports.clock.now(), rng=random.Random(chosen.service.seed))
        return plan_fields(plan, view) | learnt_by(view)

    return in_time(work, timeout)


def look_once(
    topology: str, addresses: Addresses, settings: Settings, timeout: float,
    made: Callable[[ClusterView], dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """The result of `made` for the view of a running topology."""

    def work(tell: Tell) -> dict[str, Any]:
        from leeward.adapters.wiring import open_ports

        tell(f"{topology}: its measurements, or why there are none, within {timeout:g} s")
        with open_ports(topology, addresses, quiet=True, network=settings.network) as ports:
            return made(_view(topology, ports, settings, tell))

    return in_time(work, timeout)


def preview_once(
    topology: str, wanted: Mapping[str, Mapping[str, int]], addresses: Addresses, settings: Settings, timeout: float,
    *, force: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Tell how a reconfiguration to these replicas would go. Raises PlanError for one that would be refused."""

    def work(tell: Tell) -> dict[str, Any]:
        from leeward.adapters.wiring import open_ports
        from leeward.control.dry_run import preview_by_hand
        from leeward.control.observe import standing_of

        tell(f"{topology}: what would move, or why it would be refused, within {timeout:g} s")
        with open_ports(topology, addresses, quiet=True) as ports:
            standing = standing_of(topology, ports)
            view = _view(topology, ports, settings, tell, checked=False)
        return preview_by_hand(view, wanted, settings, standing, force=force)

    return in_time(work, timeout)


def await_running(topology: str, ports: Ports, timeout: float) -> None:
    """Return when all tasks of the topology run. Raises NotReadyError after `timeout` s, ConfigError."""
    from leeward.control.observe import tasks_running
    from leeward.core.errors import NotReadyError

    until, told = time.monotonic() + timeout, ""
    while True:
        up, known = tasks_running(topology, ports)
        if known and up == known:
            return
        said = f"{up} of {known} tasks run" if known else "Storm has not placed it yet"
        if time.monotonic() > until:
            raise NotReadyError(
                f"{topology}: after {timeout:g} s {said}.",
                remedy="Look into the workers' logs; `leeward status` names a full cluster.",
            )
        if said != told:
            typer.echo(f"{said} ...", err=True)
        told = said
        time.sleep(0.5)


def _view(topology: str, ports: Ports, settings: Settings, tell: Tell, *, checked: bool = True) -> ClusterView:
    """The view over one window, when every task has a place."""
    from leeward.control.observe import observe, why_not_ready

    told = ""
    while why := why_not_ready(topology, ports):
        if why != told:
            tell(f"waiting: {why}")
        told = why
        time.sleep(0.5)
    tell(f"measuring for {settings.window_s:g} s")
    return observe(topology, ports, settings, sleep=time.sleep, checked=checked)
