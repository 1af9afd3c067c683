"""The streamparse DSL, extended: groupings that route by table, and the marker stream that every component carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamparse import Grouping, Stream
from streamparse.dsl.component import ComponentSpec

from leeward.core.errors import ConfigError

MARKER_STREAM = "marker"
MARKER_FIELDS = ("kind", "epoch", "tables", "counts", "body")

#: Component configuration key that tells the scheduler service what the component is.
KIND = "leeward.kind"


def keyed(*fields: str) -> object:
    """Grouping: the task that owns the key group of these fields (str or int values) gets the tuple."""
    if not fields or len(fields) > 3:
        raise ConfigError(f"keyed{fields!r} names {len(fields)} fields.", remedy="Name one to three field names.")
    return Grouping.custom_object("leeward.grouping.KeyedGrouping", list(fields))


def balanced() -> object:
    """Grouping: the replicas of a stateless component take turns, in proportion to the groups they own."""
    return Grouping.custom_object("leeward.grouping.BalancedGrouping", [])


def with_marker_output(outputs: Sequence | None) -> list:
    """The component's outputs and the marker stream."""
    return [*(outputs or []), Stream(fields=list(MARKER_FIELDS), name=MARKER_STREAM)]


def with_marker_inputs(name: str, inputs: Mapping | Sequence | ComponentSpec | None) -> dict:
    """The component's inputs, and the marker stream of every component among them.

    Raises ConfigError for an input that is not routed by table: its tuples would bypass the protocol.
    """
    if not isinstance(inputs, Mapping) or not inputs:
        raise ConfigError(
            f"inputs of {name} are {inputs!r}.",
            remedy="Give a mapping such as inputs={parser: balanced()} or inputs={route: keyed('route')}.",
        )
    result = dict(inputs)
    for source, grouping in inputs.items():
        java = getattr(grouping, "custom_object", None)
        if java is None or not java.full_class_name.startswith("leeward.grouping."):
            raise ConfigError(
                f"{name} takes {source!r} by {grouping!r}.",
                remedy="Use balanced() or keyed(...): tables route tuples.",
            )
        spec = source if isinstance(source, ComponentSpec) else source.componentId
        if not isinstance(spec, ComponentSpec):
            raise ConfigError(f"{name} takes a stream of {spec!r} by name.", remedy="Name the component object.")
        if MARKER_STREAM not in spec.common.streams:
            raise ConfigError(
                f"{name} takes its input from {spec.component_cls.__name__}, which sends no markers.",
                remedy="Derive it from leeward.runtime.ElasticBolt, StatefulBolt or StatefulSpout.",
            )
        result[spec[MARKER_STREAM]] = Grouping.custom_object("leeward.grouping.MarkerGrouping", [])
    return result
