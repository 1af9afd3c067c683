"""The instance format `bimodal-mapping/1` (JSON) to values.

A parsed document is data from outside: nothing in it is trusted, and every complaint names the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.policies.bimodal.model.values import Link, Network, Server, Task, check_ends

FORMAT = "bimodal-mapping/1"
#: `seed` and `expected` are for readers; they are allowed and not looked at.
TOP_KEYS = ("format", "seed", "servers", "links", "task", "expected")
TASK_KEYS = ("source", "delivery", "services", "cpu", "bandwidth", "max_null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A network, and a task to map onto it."""

    network: Network
    task: Task


def read_instance(path: Path) -> Instance:
    """The instance in a JSON file; raises `FieldError` also where it cannot be read or is not JSON."""
    return instance_from_json(fields.read_json(path))


def instance_from_json(document: object) -> Instance:
    """An instance from the parsed format; raises `FieldError` naming the first wrong field."""
    top = fields.mapping("the document", document, frozenset(TOP_KEYS), required=("format", "servers", "links", "task"))
    if top["format"] != FORMAT:
        raise FieldError("format", top["format"], "is another format", remedy=f"give {FORMAT}")
    network = Network(
        fields.each("servers", top["servers"], server_from_json), fields.each("links", top["links"], link_from_json)
    )
    task = task_from_json("task", top["task"])
    check_ends(task, network)
    return Instance(network=network, task=task)


def server_from_json(field: str, value: object) -> Server:
    """A server of a parsed document."""
    names = ("id", "cpu", "services")
    entry = fields.mapping(field, value, frozenset((*names, "uplink")), required=names)
    return Server(
        id=fields.whole(f"{field}.id", entry["id"]),
        cpu=fields.number(f"{field}.cpu", entry["cpu"]),
        services=frozenset(fields.each(f"{field}.services", entry["services"], fields.whole)),
        uplink=fields.number(f"{field}.uplink", entry.get("uplink", 0.0)),
    )


def link_from_json(field: str, value: object) -> Link:
    """A link of a parsed document."""
    names = ("a", "b", "bandwidth", "cost", "delay")
    entry = fields.mapping(field, value, frozenset(names), required=names)
    return Link(
        a=fields.whole(f"{field}.a", entry["a"]),
        b=fields.whole(f"{field}.b", entry["b"]),
        bandwidth=fields.number(f"{field}.bandwidth", entry["bandwidth"]),
        cost=fields.number(f"{field}.cost", entry["cost"]),
        delay=fields.number(f"{field}.delay", entry["delay"]),
    )


def task_from_json(name: str, value: object) -> Task:
    """A task of a parsed document, with this name."""
    entry = fields.mapping("task", value, frozenset((*TASK_KEYS, "price")), required=TASK_KEYS)
    return Task(
        name=name,
        source=fields.whole("task.source", entry["source"]),
        delivery=fields.whole("task.delivery", entry["delivery"]),
        services=fields.each("task.services", entry["services"], fields.whole),
        cpu=fields.row("task.cpu", entry["cpu"]),
        bandwidth=fields.row("task.bandwidth", entry["bandwidth"]),
        max_null=fields.whole("task.max_null", entry["max_null"]),
        price=fields.number("task.price", entry.get("price", 1.0)),
    )
