"""A task as it is submitted to Storm, in a file of its own (JSON): names of nodes where an instance has numbers.

    {"name": "s1", "source": "v1", "delivery": "v4", "services": [2, 0], "cpu": [1, 1], "mbps": [0.4, 0.4, 0.2],
     "rate": 20, "max_null": 1, "price": 1}

`rate` is in events/s, and each event passes every service, so an event on hop i has mbps[i] / rate bits.  More than
`mbps` is reserved on the network: `HEADROOM` is for headers, acknowledgements and markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.core import fields
from leeward.core.fields import check_number

KEYS = ("name", "source", "delivery", "services", "cpu", "mbps", "rate", "max_null", "price")
#: Bandwidth that is reserved over that of the events alone.
HEADROOM = 1.2
BITS_PER_MBIT, BITS_PER_BYTE = 1e6, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """See the module. `mbps[i]`: Mbit/s of the events in front of the i-th service, the last one behind the last."""

    name: str
    source: str
    delivery: str
    services: tuple[int, ...]
    cpu: tuple[float, ...]
    mbps: tuple[float, ...]
    rate: float
    max_null: int = 1
    price: float = 1.0

    def event_bytes(self, hop: int) -> float:
        """Of an event on this hop."""
        return self.mbps[hop] * BITS_PER_MBIT / BITS_PER_BYTE / self.rate


def read_stream(path: Path) -> Stream:
    """The task in a JSON file; raises `FieldError` also where it cannot be read or is not JSON."""
    return stream_from_json(fields.read_json(path))


def stream_from_json(document: object) -> Stream:
    """The task of a parsed file. Raises `FieldError` naming the first wrong field."""
    top = fields.mapping("the document", document, frozenset(KEYS), required=KEYS[:7])
    found = Stream(
        name=fields.text("name", top["name"]),
        source=fields.text("source", top["source"]),
        delivery=fields.text("delivery", top["delivery"]),
        services=fields.each("services", top["services"], fields.whole),
        cpu=fields.row("cpu", top["cpu"]),
        mbps=fields.row("mbps", top["mbps"]),
        rate=fields.number("rate", top["rate"]),
        max_null=fields.whole("max_null", top.get("max_null", 1)),
        price=fields.number("price", top.get("price", 1.0)),
    )
    check_number("rate", found.rate, positive=True)
    for name, values, wanted in (("cpu", found.cpu, 0), ("mbps", found.mbps, 1)):
        if len(values) != len(found.services) + wanted:
            raise fields.FieldError(
                name,
                list(values),
                f"does not fit {len(found.services)} services",
                remedy="give one each, mbps one more",
            )
        for i, value in enumerate(values):
            check_number(f"{name}[{i}]", value, positive=True)
    return found


def stream_to_json(stream: Stream) -> dict[str, Any]:
    """The document of a task; `stream_from_json` reads it back."""
    return {name: list(value) if isinstance(value := getattr(stream, name), tuple) else value for name in KEYS}
