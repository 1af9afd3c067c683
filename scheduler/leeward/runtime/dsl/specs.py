"""The streamparse DSL, extended: groupings that route by table, and the marker stream that every component carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from streamparse import Grouping, Stream
from streamparse.dsl.bolt import ShellBoltSpec
from streamparse.dsl.component import ComponentSpec
from streamparse.dsl.spout import ShellSpoutSpec
from streamparse.thrift import ComponentObject, GlobalStreamId, JavaObject, JavaObjectArg, ShellComponent

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import KIND as KIND_KEY

MARKER_STREAM = "marker"
MARKER_FIELDS = ("kind", "epoch", "tables", "counts", "body")

#: Component configuration key by which the scheduler service knows the kind of the component.
KIND = KIND_KEY.name
#: Storm's shell components, with our pipe and a process that is replaced when it is lost.
BOLT_CLASS = "leeward.multilang.PipeBolt"
SPOUT_CLASS = "leeward.multilang.PipeSpout"
#: Classes of the groupings that route by table.
KEYED_CLASS, BALANCED_CLASS = "leeward.grouping.KeyedGrouping", "leeward.grouping.BalancedGrouping"
MOST_FIELDS = 3  #: of a key: KeyedGrouping has a constructor for each number


def keyed(*fields: str) -> object:
    """Grouping: the task that owns the key group of these fields (str or int values) gets the tuple.

    It keeps state by the field, `state[tup.a]`, or with several by all of them, `state[tup.a, tup.b]`.
    """
    if not 0 < len(fields) <= MOST_FIELDS:
        raise ConfigError(f"keyed{fields!r} names {len(fields)} fields.", remedy="Name one to three field names.")
    return Grouping.custom_object(KEYED_CLASS, list(fields))


def balanced() -> object:
    """Grouping: the replicas of a stateless component take turns, in proportion to the groups they own."""
    return Grouping.custom_object(BALANCED_CLASS, [])


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


class StreamOf(GlobalStreamId):  # type: ignore[misc]
    """A stream as streamparse names it, with the component that declares it: also where the name alone is known."""

    thrift_spec: ClassVar = GlobalStreamId.thrift_spec

    def __init__(self, spec: ComponentSpec, stream: str) -> None:
        super().__init__(componentId=spec.name or spec, streamId=stream)
        self.declared_by = spec


class _Sending:
    """The common part of the two kinds of specs. Mixed in before streamparse's classes."""

    common: Any

    def __getitem__(self, stream: str) -> StreamOf:
        """As streamparse's; a component that takes the stream can look up its fields."""
        super().__getitem__(stream)  # type: ignore[misc]  # raises KeyError for a stream that is not declared
        return StreamOf(self, stream)


class ElasticBoltSpec(_Sending, ShellBoltSpec):  # type: ignore[misc]
    """An elastic bolt in a topology."""


class ElasticSpoutSpec(_Sending, ShellSpoutSpec):  # type: ignore[misc]
    """An elastic spout in a topology."""


def command_of(component: type) -> dict[str, str]:
    """How streamparse starts a component."""
    return {"command": "streamparse_run", "script": f"{component.__module__}.{component.__name__}"}


def with_marker_output(name: str, outputs: Sequence[Any] | None) -> list[Any]:
    """The component's outputs and the marker stream. Raises ConfigError if there is a stream of that name."""
    if any(isinstance(output, Stream) and output.name == MARKER_STREAM for output in outputs or ()):
        raise ConfigError(
            f"{name} declares a stream {MARKER_STREAM!r}, which is the name of Leeward's own.",
            remedy="Give it another name.",
        )
    return [*(outputs or []), Stream(fields=list(MARKER_FIELDS), name=MARKER_STREAM)]
