"""Questions that compute: a dry run of the policy, the explanation, a check of settings, a look at all topologies.

They change nothing, so they need no token. Their cost is bounded: one dry run, explanation or check is in progress at a
time, in a process of its own that is ended after a limit. Settings that name files, servers or classes that are not
installed are refused. Every method may wait for a server, so none may be called in an event loop.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Protocol

from leeward.adapters.apart import call_apart
from leeward.adapters.http.desk import Desk
from leeward.adapters.http.problems import Problem, Trouble
from leeward.control.deployment_document import diff_document
from leeward.control.dry_run import no_letters, preview_by_hand
from leeward.control.observe import observe, standing_of, why_not_ready
from leeward.control.ports import Ports
from leeward.control.report.look import Look
from leeward.control.settings_check import with_asked_options
from leeward.core.errors import ConfigError, NotReadyError
from leeward.core.model import ClusterView
from leeward.core.settings import Chosen

#: Longest time over which rates are measured for one question, s; and between the two looks of `top`, s.
WINDOW_S, LOOK_S = 60.0, 1.0
#: Rates of `top` begin anew if nobody has asked for so long, s.
FORGET_S = 10.0
#: A check of settings has so long, s: it imports the policies that they name.
CHECK_S = 60.0
#: A question that is asked while another one computes is answered with this time to wait, s.
AGAIN_S = 5


class Run(Protocol):
    """Calls `module:function`, as `adapters/apart.call_apart` does."""

    def __call__(
        self, function: str, arguments: tuple[Any, ...], options: Mapping[str, Any], *, limit_s: float,
        over: Callable[[], bool],
    ) -> Any:  # fmt: skip
        """Its value. Raises LeewardError."""


class Studies:
    """See the module. `explain`: `module:function` that explains a view (`policies/edrp/questions/running.py`)."""

    def __init__(
        self, desk: Desk, explain: str, *, over: Callable[[], bool], run: Run = call_apart,
        sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`over`: whether the service ends; `sleep`: waits between two measurements; `clock`: in seconds."""
        self._desk, self._explain, self._over, self._run = desk, explain, over, run
        self._sleep, self._clock = sleep, clock
        self._computing, self._looking = threading.Lock(), threading.Lock()
        self._looks: dict[str, tuple[Ports, Look]] = {}
        self._top: tuple[float, dict[str, Any]] | None = None  # when it was told, and the document
        self._schema: dict[str, Any] | None = None

    def plan(self, topology: str, options: Sequence[str], limit_s: float) -> dict[str, Any]:
        """The document of `leeward plan`, by the settings in force and these options over them."""
        chosen = with_asked_options(self._desk.settings, options)
        with self._alone():
            ports, view = self._seen(topology, chosen)
            standing = standing_of(topology, ports)
            asked = {"now": ports.clock.now(), "frozen": bool(standing and standing.frozen), "post": no_letters}
            found: dict[str, Any] = self._apart("leeward.control.dry_run:dry_run", (view, chosen), asked, limit_s)
        return found

    def explain(self, topology: str, options: Sequence[str], limit_s: float, asked: Mapping[str, Any]) -> Any:
        """The document of `leeward explain TOPOLOGY`, or its text; `asked`: further arguments of the function."""
        chosen = with_asked_options(self._desk.settings, options)
        with self._alone():
            _, view = self._seen(topology, chosen)
            return self._apart(self._explain, (view, chosen.of(topology)), asked, limit_s)

    def check(self, document: Mapping[str, object], options: Sequence[str]) -> dict[str, Any]:
        """The document of `leeward validate`; files and servers that it names are not looked at."""
        with self._alone():
            found: dict[str, Any] = self._apart(
                "leeward.control.settings_check:checked", (document, options), {}, CHECK_S
            )
        return found

    def schema(self) -> dict[str, Any]:
        """The form of a settings document, as `leeward validate --schema` prints it."""
        if self._schema is None:
            with self._alone():
                self._schema = self._apart("leeward.control.settings_schema:schema", (), {}, CHECK_S)
        assert self._schema is not None
        return self._schema

    def preview(self, topology: str, wanted: Mapping[str, Mapping[str, int]], *, force: bool) -> dict[str, object]:
        """The document of `leeward apply --dry-run`. Raises PlanError for one that would be refused."""
        chosen = self._desk.settings
        ports, view = self._seen(topology, chosen, checked=False)
        return preview_by_hand(view, wanted, chosen.of(topology).service, standing_of(topology, ports), force=force)

    def diff(self, topology: str, wanted: Mapping[str, Mapping[str, int]] | None) -> dict[str, Any]:
        """The document of `leeward diff`; `wanted`: None is the plan that waits."""
        return diff_document(self._desk.status(topology), wanted)

    def top(self) -> dict[str, Any]:
        """The document of `leeward top`, of the topologies that are served here."""
        with self._looking:
            age = math.inf if self._top is None else self._clock() - self._top[0]
            if self._top is not None and age < LOOK_S:
                return self._top[1]
            if age > FORGET_S:
                self._looks = {}
            if self._look():
                self._sleep(LOOK_S)  # rates are known from the second look on
            lines = [look.line() for _, (_, look) in sorted(self._looks.items())]
            self._top = self._clock(), {"topologies": [asdict(line) for line in lines]}
            return self._top[1]

    # --- looking

    def _seen(self, topology: str, chosen: Chosen, *, checked: bool = True) -> tuple[Ports, ClusterView]:
        """The view over one window. Raises NotReadyError while no plan can be made."""
        settings = chosen.of(topology).service
        if settings.window_s > WINDOW_S:
            raise ConfigError(
                f"setting 'window_s' is {settings.window_s:g}, and a question may wait for {WINDOW_S:g} s.",
                remedy=f"Give the option window_s={WINDOW_S:g}, or use the command.",
            )
        ports = self._desk.ports(topology)
        why = why_not_ready(topology, ports)
        if why:
            raise NotReadyError(f"{topology}: {why}.", remedy="Ask again when it is placed.")
        return ports, observe(topology, ports, settings, sleep=self._sleep, checked=checked)

    def _look(self) -> bool:
        """Begin to look at topologies that are new here, and forget those that are gone; whether there are new ones."""
        served, settings = self._desk.served(), self._desk.settings
        self._looks = {name: one for name, one in self._looks.items() if served.get(name) is one[0]}
        new = sorted(served.keys() - self._looks.keys())
        for name in new:
            try:
                look = Look(name, self._desk.ports(name), settings.of(name).service)
            except (ConfigError, NotReadyError):  # it was killed a moment ago
                continue
            look.line()
            self._looks[name] = served[name], look
        return bool(new)

    # --- computing

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other question computes. Raises Trouble (503) at once if one does."""
        if not self._computing.acquire(blocking=False):
            problem = Problem("another dry run, explanation or check is in progress.", f"Ask again in {AGAIN_S} s.")
            raise Trouble(503, problem, {"Retry-After": str(AGAIN_S)})
        try:
            yield
        finally:
            self._computing.release()

    def _apart(self, function: str, arguments: tuple[Any, ...], options: Mapping[str, Any], limit_s: float) -> Any:
        return self._run(function, arguments, options, limit_s=limit_s, over=self._over)
