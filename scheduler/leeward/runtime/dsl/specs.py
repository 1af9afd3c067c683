"""The streamparse DSL, extended: groupings that route by table, and the marker stream that every component carries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from streamparse import Grouping, Stream
from streamparse.dsl.component import ComponentSpec, JavaComponentSpec
from streamparse.thrift import ComponentObject, JavaObject, JavaObjectArg, ShellComponent

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import KIND as KIND_KEY

MARKER_STREAM = "marker"
MARKER_FIELDS = ("kind", "epoch", "tables", "counts", "body")

#: Component configuration key by which the scheduler service knows the kind of the component.
KIND = KIND_KEY.name
#: Storm's shell components, with our pipe and a process that is replaced when it is lost.
BOLT_CLASS = "leeward.multilang.PipeBolt"
SPOUT_CLASS = "leeward.multilang.PipeSpout"


def keyed(*fields: str) -> object:
    """Grouping: the task that owns the key group of these fields (str or int values) gets the tuple.

    It keeps state by the field, `state[tup.a]`, or with several by all of them, `state[tup.a, tup.b]`.
    """
    if not fields or len(fields) > 3:
        raise ConfigError(f"keyed{fields!r} names {len(fields)} fields.", remedy="Name one to three field names.")
    return Grouping.custom_object("leeward.grouping.KeyedGrouping", list(fields))


def balanced() -> object:
    """Grouping: the replicas of a stateless component take turns, in proportion to the groups they own."""
    return Grouping.custom_object("leeward.grouping.BalancedGrouping", [])


class Piped(ComponentObject):  # type: ignore[misc]  # streamparse has no types
    """A component as Storm receives it: our Java class, with the command as its arguments.

    To streamparse, which puts the virtualenv's path into the command, it is a shell component like any other.
    """

    thrift_spec: ClassVar = {3: ComponentObject.thrift_spec[3]}

    def __init__(self, shell: ShellComponent, java_class: str) -> None:
        self.shell, self._java_class = shell, java_class

    @property
    def java_object(self) -> JavaObject:
        """The form that goes to Storm."""
        arguments = (self.shell.execution_command, self.shell.script)
        return JavaObject(
            full_class_name=self._java_class,
            args_list=[JavaObjectArg(string_arg=argument) for argument in arguments],
        )


def with_marker_output(outputs: Sequence[Any] | None) -> list[Any]:
    """The component's outputs and the marker stream."""
    return [*(outputs or []), Stream(fields=list(MARKER_FIELDS), name=MARKER_STREAM)]


def with_marker_inputs(name: str, inputs: Mapping[Any, Any] | Sequence[Any] | ComponentSpec | None) -> dict[Any, Any]:
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
        _check_sends_markers(name, spec)
        result[spec[MARKER_STREAM]] = Grouping.custom_object("leeward.grouping.MarkerGrouping", [])
    return result


def _check_sends_markers(name: str, source: ComponentSpec) -> None:
    """Raises ConfigError for a source that is not one of ours: a stream called `marker` does not make it one."""
    if KIND in json.loads(source.common.json_conf or "{}"):
        return
    what, remedy = source.component_cls.__name__, "derive from StatefulSpout, ElasticBolt or StatefulBolt."
    if isinstance(source, JavaComponentSpec):
        java = source.component_object.java_object
        what += f" {java.full_class_name}" if java else " (serialized)"
        remedy = f"write it in Python: {remedy}"
    raise ConfigError(
        f"{name} takes its input from {what}, which sends no markers, so {name}'s replicas and state cannot move.",
        remedy=remedy[0].upper() + remedy[1:],
    )
