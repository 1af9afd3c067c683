"""Inputs of an elastic component, as streamparse writes them: each gets a grouping that routes by table, or is refused.

A refusal names the component, the input and the remedy, and prints no objects: streamparse's specs have long texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamparse import Grouping
from streamparse.dsl.component import ComponentSpec, JavaComponentSpec
from streamparse.thrift import GlobalStreamId, storm_thrift

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import MAX_REPLICAS
from leeward.runtime.dsl.specs import BALANCED_CLASS, KEYED_CLASS, KIND, MARKER_STREAM, MOST_FIELDS, balanced, keyed

#: Groupings of Storm that say no more than `balanced()`.
_ANY_TASK = ("shuffle", "local_or_shuffle", "none")
_BY_KEY = "Emit the key as a field, and use keyed(...)."


@dataclass(frozen=True, slots=True)
class Receiver:
    """The component that takes the inputs."""

    name: str  #: of the component, or of its class while it has none
    replicas: int  #: the most that it can have
    stateful: bool


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of one component upstream."""

    source: ComponentSpec
    stream: str

    def __str__(self) -> str:
        name = _name(self.source)
        return name if self.stream == "default" else f"{name}[{self.stream!r}]"

    @property
    def declared(self) -> Any:
        """The stream as its component declares it; None if it does not."""
        return self.source.common.streams.get(self.stream)

    @property
    def fields(self) -> list[str]:
        """Their names."""
        return list(self.declared.output_fields)


def most_replicas(par: int | Mapping[str, int], conf: Mapping[str, Any]) -> int:
    """The most replicas that a component can have: its tasks (in any of streamparse's environments), or fewer."""
    tasks = max(par.values()) if isinstance(par, Mapping) else par
    return min(tasks, int(conf.get(MAX_REPLICAS.name, tasks)))


def with_marker_inputs(receiver: Receiver, inputs: Any) -> dict[Any, Any]:
    """The component's inputs, each routed by table, and the marker stream of every component among them.

    Raises ConfigError for an input that no table can route: its tuples would bypass the protocol.
    """
    result: dict[Any, Any] = {}
    for source, grouping in _pairs(receiver, inputs):
        given = _input(receiver, source)
        _check_sends(receiver, given)
        routed = _routed(receiver, given, grouping)
        result[GlobalStreamId(componentId=given.source.name or given.source, streamId=given.stream)] = routed
        marker = GlobalStreamId(componentId=given.source.name or given.source, streamId=MARKER_STREAM)
        result[marker] = Grouping.custom_object("leeward.grouping.MarkerGrouping", [])
    return result


def refuse_missing_fields(receiver: Receiver, inputs: Any, facts: Mapping[str, str]) -> None:
    """Raises ConfigError for an input without a field that the receiver's queue is ordered by. `facts`: by field."""
    for source, _ in _pairs(receiver, inputs):
        given = _input(receiver, source)
        for field, fact in facts.items():
            if field not in given.fields:
                declared = ", ".join(map(repr, given.fields)) or "no field"
                raise ConfigError(
                    f"{receiver.name} orders its queue by {field!r} ({fact}), but {given} declares {declared}.",
                    remedy=f"Name one of these, add the field to its outputs, or leave {fact} out of ordered_by.",
                )


def refuse_tables_for_stock_bolts(specs: Iterable[ComponentSpec]) -> None:
    """Raises ConfigError for a bolt of streamparse, or in Java, behind `keyed` or `balanced`: it is in no table."""
    for spec in specs:
        if _is_elastic(spec):
            continue
        for stream, grouping in (spec.inputs or {}).items():
            java = getattr(grouping, "custom_object", None)
            if java is not None and java.full_class_name in (KEYED_CLASS, BALANCED_CLASS):
                fields = ", ".join(repr(argument.string_arg) for argument in java.args_list)
                ours, storms = ("keyed", f"fields({fields})") if fields else ("balanced", "SHUFFLE")
                raise ConfigError(
                    f"{spec.name} is not elastic, but takes {stream.componentId} by {ours}({fields}), and no table "
                    "has its tasks.",
                    remedy=f"Use Grouping.{storms}, or derive {spec.name} from ElasticBolt or StatefulBolt.",
                )


def _is_elastic(spec: ComponentSpec) -> bool:
    return KIND in json.loads(spec.common.json_conf or "{}")


def _name(spec: ComponentSpec) -> str:
    if isinstance(spec, JavaComponentSpec) and not spec.name:
        java = spec.component_object.java_object
        return f"{spec.component_cls.__name__} {java.full_class_name if java else '(serialized)'}"
    return spec.name or str(spec.component_cls.__name__)


def _pairs(receiver: Receiver, inputs: Any) -> Iterator[tuple[Any, Any]]:
    """Streams and groupings, None where there is none, as in a list."""
    if not isinstance(inputs, ComponentSpec | GlobalStreamId) and not inputs:
        raise ConfigError(
            f"{receiver.name} has no input.",
            remedy="Give it inputs=[source], inputs={source: balanced()} or inputs={source: keyed('field')}.",
        )
    if isinstance(inputs, Mapping):
        yield from inputs.items()
        return
    for source in inputs if isinstance(inputs, list | tuple) else [inputs]:
        yield source, None


def _input(receiver: Receiver, source: Any) -> Input:
    if isinstance(source, ComponentSpec):
        return Input(source, "default")
    if not isinstance(source, GlobalStreamId):
        raise ConfigError(
            f"{receiver.name} takes a {type(source).__name__} as input.",
            remedy="Give components or their streams, such as words or words['letters'].",
        )
    spec = getattr(source, "declared_by", source.componentId)
    if isinstance(spec, ComponentSpec):
        return Input(spec, source.streamId)
    raise ConfigError(
        f"{receiver.name} takes the stream {source.streamId!r} of {spec!r} by name, so its fields are not known.",
        remedy=f"Write {spec}[{source.streamId!r}], where {spec} derives from a class of Leeward's.",
    )


def _check_sends(receiver: Receiver, given: Input) -> None:
    """Raises ConfigError for a source that is not one of ours: a stream called `marker` does not make it one."""
    source = given.source
    if not _is_elastic(source):
        remedy, name = "from StatefulSpout, ElasticBolt or StatefulBolt.", source.component_cls.__name__
        java = isinstance(source, JavaComponentSpec)
        raise ConfigError(
            f"{receiver.name} takes {given}, which sends no markers, so {receiver.name}'s state cannot move.",
            remedy=f"Write it in Python, derived {remedy}" if java else f"Derive {name} {remedy}",
        )
    if given.stream == MARKER_STREAM:
        raise ConfigError(
            f"{receiver.name} takes {given}, Leeward's own stream, which it gets with each other one.",
            remedy=f"Take a stream with data, such as {{{_name(source)}: balanced()}}.",
        )
    if given.declared is None:
        others = ", ".join(repr(name) for name in source.common.streams if name != MARKER_STREAM) or "none"
        raise ConfigError(
            f"{receiver.name} takes {given}, whose default stream is not declared; it declares {others}.",
            remedy=f"Name the stream, as in {_name(source)}['name'].",
        )


def _routed(receiver: Receiver, given: Input, grouping: Any) -> Any:
    """The grouping by table that does as this one. Raises ConfigError if there is none."""
    if grouping is None:
        grouping = Grouping.DIRECT if given.declared.direct else Grouping.SHUFFLE
    if not isinstance(grouping, storm_thrift.Grouping):
        raise ConfigError(
            f"{receiver.name} takes {given} by a {type(grouping).__name__}.",
            remedy=f"Use balanced() or keyed({given.fields[0]!r})." if given.fields else "Use balanced().",
        )
    java = grouping.custom_object
    if java is not None and java.full_class_name == KEYED_CLASS:
        return _by_key(receiver, given, [argument.string_arg for argument in java.args_list])
    if grouping.fields:
        return _by_key(receiver, given, list(grouping.fields))
    simple = any(getattr(grouping, kind) is not None for kind in _ANY_TASK)
    if given.declared.direct or not (simple or (java is not None and java.full_class_name == BALANCED_CLASS)):
        raise _refusal(receiver, given, Grouping.DIRECT if given.declared.direct else grouping)
    if receiver.stateful and receiver.replicas > 1:
        field = given.fields[0] if given.fields else "field"
        raise ConfigError(
            f"{receiver.name} keeps state and takes {given} by balanced(), so any replica would get any key.",
            remedy=f"Use keyed({field!r}), or allow one replica by config={{{MAX_REPLICAS.name!r}: 1}}.",
        )
    return balanced()


def _by_key(receiver: Receiver, given: Input, fields: list[str]) -> Any:
    if len(fields) > MOST_FIELDS:
        raise ConfigError(
            f"{receiver.name} takes {given} by {len(fields)} fields.",
            remedy="Name one to three, or emit one field that joins them.",
        )
    if not set(fields) <= set(given.fields):
        declared = ", ".join(map(repr, given.fields)) or "no field"
        raise ConfigError(
            f"{receiver.name} takes {given} by keyed({', '.join(map(repr, fields))}), but {given} declares {declared}.",
            remedy="Name one of these, or add the field to its outputs.",
        )
    return keyed(*fields)


def _refusal(receiver: Receiver, given: Input, grouping: Any) -> ConfigError:
    """Of a grouping that chooses tasks without a table."""
    takes = f"{receiver.name} takes {given} by"
    if grouping.direct is not None:
        return ConfigError(f"{takes} Grouping.DIRECT, and a sender does not know the replicas.", remedy=_BY_KEY)
    if grouping.all is not None:
        return ConfigError(
            f"{takes} Grouping.ALL, so results would depend on the number of replicas.",
            remedy="Put the data into a pulse, which reaches each replica, or keep a streamparse.Bolt for it.",
        )
    if grouping.fields is not None:
        return ConfigError(
            f"{takes} Grouping.GLOBAL, which names one task for good, replica or not.",
            remedy=f"Use balanced() and allow one replica by config={{{MAX_REPLICAS.name!r}: 1}}.",
        )
    java = grouping.custom_object
    name = java.full_class_name if java is not None else "a serialized grouping"
    return ConfigError(f"{takes} {name}, which knows no table of replicas.", remedy=_BY_KEY)
