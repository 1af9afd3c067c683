"""An application as its scheduler gives it to the overlay: operators, and the nodes of its sensors and actuators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leeward.core.errors import LeewardError


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One of them. A source has no upstream, a sink no downstream; both have the node of their sensor or actuator."""

    name: str
    upstream: tuple[str, ...] = ()  #: operators whose streams it reads
    at: int | None = None  #: id of the node that it is pinned to; None: the overlay decides
    allowed: frozenset[int] | None = None  #: ids of the only nodes that may host it; None: any


#: A source and a sink with a way between them: one JOIN.
Pair = tuple[str, str]


class Application:
    """Operators in topological order, each behind its upstream.

    Raises LeewardError for an operator that is named twice, has an unknown or later upstream, or is a source or sink
    without a node.
    """

    def __init__(self, name: str, operators: Iterable[Operator]) -> None:
        self.name, self.operators = name, tuple(operators)
        if not self.operators:
            raise self._wrong("it has no operators", "Give one or more.")
        from_sources: dict[str, tuple[str, ...]] = {}
        for operator in self.operators:
            if operator.name in from_sources:
                raise self._wrong(f"operator {operator.name!r} is named twice", "Give each a name of its own.")
            late = [name for name in operator.upstream if name not in from_sources]
            if late:
                raise self._wrong(
                    f"operator {operator.name!r} reads {late[0]!r}, which is not before it",
                    "List the operators in topological order; a dataflow has no circle.",
                )
            reached = dict.fromkeys(source for name in operator.upstream for source in from_sources[name])
            from_sources[operator.name] = tuple(reached) or (operator.name,)
        to_sinks: dict[str, dict[str, None]] = {operator.name: {} for operator in self.operators}
        for operator in reversed(self.operators):
            own = to_sinks[operator.name] or {operator.name: None}
            to_sinks[operator.name] = own
            for name in operator.upstream:
                to_sinks[name] |= own
        #: Of each operator the JOINs on whose ways it lies, in the order of the sources.
        self.pairs: dict[str, tuple[Pair, ...]] = {
            name: tuple((source, sink) for source in sources for sink in sorted(to_sinks[name]))
            for name, sources in from_sources.items()
        }
        self._check_ends()

    @property
    def joins(self) -> tuple[Pair, ...]:
        """Every source with every sink that its tuples reach."""
        return tuple(dict.fromkeys(pair for pairs in self.pairs.values() for pair in pairs))

    def node_of(self, end: str) -> int:
        """The node of a source or sink."""
        node = next(operator.at for operator in self.operators if operator.name == end)
        assert node is not None
        return node

    def _check_ends(self) -> None:
        ends = {name for pair in self.joins for name in pair}
        for operator in self.operators:
            if operator.name in ends and operator.at is None:
                raise self._wrong(
                    f"operator {operator.name!r} is a source or a sink and has no node",
                    "Name the node of its sensor or actuator (at).",
                )

    def _wrong(self, problem: str, remedy: str) -> LeewardError:
        return LeewardError(f"application {self.name!r}: {problem}.", remedy=remedy)
