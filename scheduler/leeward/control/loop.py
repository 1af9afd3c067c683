"""Monitor, analyse, plan: asks the policy every `period_s`, and lets through only what is safe and worth it.

Solving takes seconds, so it runs on another thread; everything else is the service's one thread. A plan that was made
for another epoch than the one in force is refused, like everything else that the guard or the cool-down forbids.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import asdict
from typing import Any, NamedTuple

from leeward.control.calm import Calm
from leeward.control.forecast import Forecast, source_rate
from leeward.control.guard import changes_nothing, check_form, check_plan, not_worth_it, would_lose
from leeward.control.limits import does_not_pay, over_limits
from leeward.control.ports import EventSink
from leeward.core.errors import LeewardError, PlanError
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, deployment, diff
from leeward.core.policy import Policy
from leeward.core.settings import Settings


class Inline(Executor):
    """Runs at once, on the caller's thread: for tests and simulators."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Aside(Executor):
    """Runs on a thread that is not joined at the end: a solver may take seconds, Ctrl-C must not.

    Work that was cancelled before it began does not begin; the value of work that was cancelled later is dropped.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=work, name="leeward-policy", daemon=True).start()
        return future


class Decision(NamedTuple):
    """The end of one question to the policy."""

    view: ClusterView  #: for which it was asked
    plan: Plan | None = None  #: to carry out; None: refused, or no change
    keeps: bool = False  #: the policy wants no change
    modelled_s: float | None = None  #: its response time of what is in force, if it keeps that and has one


class Loop:
    """See the module."""

    def __init__(
        self, *, settings: Settings, policy: Policy | None, sink: EventSink, topology: str,
        executor: Executor | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._policy, self._sink, self._topology = settings, policy, sink, topology
        self._executor = executor or Aside()
        self._rng = random.Random(settings.seed)
        self._future: Future[Plan] | None = None
        self._view: ClusterView | None = None
        self._next = 0.0
        self._calm, self._forecast = Calm(settings), Forecast(settings)

    def started(
        self, now: float, ended: float | None = None, left: Mapping[str, Mapping[str, int]] | None = None
    ) -> None:
        """A coordinator has begun: the first plan comes after one period, when rates are known, unless the policy needs
        none. `ended`, `left`: when its predecessor's last reconfiguration did, and what that has changed."""
        if ended is not None:
            self._calm.ended(min(ended, now), left)  # by another machine's clock
        self._next = now if getattr(self._policy, "at_once", False) else now + self._settings.period_s

    def ended(self, now: float, left: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """A reconfiguration is over. `left`: replicas by node that the changed components had before."""
        self._calm.ended(now, left)
        if self._policy is not None and self._settings.cool_down_s:
            why = "no plan is made so soon after a reconfiguration"
            self._emit("cool_down", {"seconds": self._settings.cool_down_s, "why": why})

    def again(self, at: float) -> None:
        """Ask the policy at this time, rather than when its period is over."""
        self._next = min(self._next, at)

    def first(self, view: ClusterView, now: float) -> Plan | None:
        """The plan for a topology of which nothing is placed yet; None from a policy that needs rates, or if the guard
        refuses it."""
        if self._policy is None or not getattr(self._policy, "at_once", False):
            return None
        try:
            plan = self._ask(view, now)
        except LeewardError as error:
            self._refuse(str(error))
            return None
        return self._decided(plan, view, now, epoch=view.epoch, idle=True).plan

    def wants_view(self, now: float) -> bool:
        """It is time to plan."""
        return self._policy is not None and self._future is None and now >= self._next and not self._calm.cools(now)

    def begin(self, view: ClusterView, now: float, wake: Callable[[], None]) -> None:
        """Ask the policy about this view with the rates to come; `wake` is called when it has answered."""
        assert self._policy is not None
        self._next = now + self._settings.period_s
        self._view, ahead = view, self._forecast.ahead(view, now)
        if ahead is not view:
            rates = {"now": round(source_rate(view), 1), "ahead": round(source_rate(ahead), 1)}
            self._emit("forecast", {"by": self._settings.forecast, **rates})
        self._future = self._executor.submit(self._ask, ahead, now)
        self._future.add_done_callback(lambda _: wake())

    def _ask(self, view: ClusterView, now: float) -> Plan:
        """The policy's plan. Raises LeewardError.

        A fault of the policy is a refusal, and the service goes on, with checkpoints and recovery; tests and simulators
        are to see it.
        """
        assert self._policy is not None
        try:
            return ask(self._policy, view, now=now, rng=self._rng)
        except LeewardError:
            raise
        except Exception as error:
            if isinstance(self._executor, Inline):
                raise
            raise PlanError(f"the policy has failed: {type(error).__name__}: {error}.") from error

    def take(self, epoch: int, idle: bool, now: float, *, hold: str = "") -> Decision | None:
        """The policy's answer as the guard leaves it; None while there is none. `hold`: why no plan is carried out."""
        if self._future is None or not self._future.done():
            return None
        future, view = self._future, self._view
        self._future = self._view = None
        assert view is not None
        try:
            plan = future.result()
        except LeewardError as error:
            self._refuse(str(error))
            return Decision(view)
        return self._decided(plan, view, now, epoch=epoch, idle=idle, hold=hold)

    def _decided(
        self, plan: Plan, view: ClusterView, now: float, *, epoch: int, idle: bool, hold: str = ""
    ) -> Decision:
        self._emit("plan_made", plan_fields(plan, view))
        self._calm.heard(plan, view, now)
        why = self.objection(plan, view, now, epoch=epoch, idle=idle, hold=hold)
        if why is None:
            return Decision(view, plan)
        if why:
            self._refuse(why)
        return Decision(view, keeps=not why, modelled_s=None if why else plan.estimate.response_s)

    def objection(
        self, plan: Plan, view: ClusterView, now: float, *, epoch: int, idle: bool, hold: str = ""
    ) -> str | None:
        """The reason to refuse it; "" if it changes nothing; None if it is accepted."""
        if changes_nothing(plan, view):
            return ""
        if epoch != view.epoch:
            return f"made for epoch {view.epoch}, epoch {epoch} is in force"
        if not idle:
            return "a reconfiguration is in progress"
        if hold:
            return hold
        return self._calm.objection(plan, view, now) or refusal(plan, view, self._settings) or None

    def close(self) -> None:
        """Return at once."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _refuse(self, why: str) -> None:
        self._emit("plan_refused", {"why": why})

    def _emit(self, action: str, fields: Mapping[str, object]) -> None:
        self._sink.emit(action, {"topology": self._topology, **fields})


def ask(policy: Policy, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
    """The policy's plan, with fields of the right types. Raises PlanError, and what the policy raises."""
    plan = policy.decide(view, now=now, rng=rng)
    check_form(plan)
    return plan


def refusal(plan: Plan, view: ClusterView, settings: Settings) -> str:
    """The reason to refuse a plan, whenever it is made; empty if there is none."""
    try:
        check_plan(plan, view)
    except LeewardError as error:
        return str(error)
    return (
        would_lose(plan, view)
        or over_limits(plan, view, settings)
        or not_worth_it(plan, view, settings)
        or does_not_pay(plan, view, settings)
    )


def finite(value: float) -> float | None:
    """JSON has no infinity: the objective of a deployment that breaks a bound is told as null."""
    return value if math.isfinite(value) else None


def plan_fields(plan: Plan, view: ClusterView) -> dict[str, object]:
    """Fields of a plan for the log."""
    fields: dict[str, object] = {"reason": plan.reason, "epoch": view.epoch}
    fields["rates"] = {name: round(m.arrival_rate, 1) for name, m in sorted(view.measured.items())}
    fields["service_rates"] = {
        name: round(m.service_rate, 1) for name, m in sorted(view.measured.items()) if m.service_rate
    }
    known = {name: value for name, value in asdict(plan.estimate).items() if value is not None}
    fields |= {name: value if isinstance(value, bool) else finite(round(value, 6)) for name, value in known.items()}
    owners = {task for tables in (view.tables, plan.tables) for table in tables.values() for task in table}
    if plan.placement and owners <= plan.placement.keys() <= view.assignment.keys():
        before, after = deployment(view.tables, view.assignment), deployment(plan.tables, plan.placement)
        fields["deployment"] = after
        fields["changes"] = [
            {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
            for c in diff(before, after)
        ]
    return fields
