"""The messages between nodes of the overlay. Values only; each fits a datagram.

A node's address is a number to the protocol, and its shell says which: an IPv4 address and a port in one
(`adapters/datagrams.py`), or a position in the simulation.  Nodes learn each other's addresses from these messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import BYTES, from_bytes, to_bytes

#: Bytes of a body, and characters of a name, so that a message fits a datagram.
LARGEST_BODY, LONGEST_NAME = 32_768, 200


@dataclass(frozen=True, kw_only=True)
class Contact:
    """A node and its address. Raises LeewardError on an id that has not 16 bytes, and on an address below 0."""

    node: bytes
    at: int

    def __post_init__(self) -> None:
        if len(self.node) != BYTES:
            from_bytes(self.node)
        if self.at < 0:
            raise LeewardError(f"address {self.at}: it is below 0.", remedy="Send the address of the node's socket.")

    @cached_property
    def id(self) -> int:
        """As tables have it."""
        return int.from_bytes(self.node, "big")


def contact(node: int, at: int) -> Contact:
    """Of an id."""
    return Contact(node=to_bytes(node), at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """To each node of the leaf set once a period, and to all known ones when the sender has joined: I am here.

    `held`: operators on the sender, of at most `capacity`.  `keeps`: its process keeps fragments of others' state, at
    the same address over TCP.
    """

    me: Contact
    held: int = 0
    capacity: int = 0
    keeps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Are you there? `me`: of a sender that has joined; None while it has not."""

    number: int
    me: Contact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """The answer to the ping of this number; `me` as there."""

    number: int
    me: Contact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The sender leaves; the nodes that it knows next to it, for the receiver's leaf set."""

    me: Contact
    others: tuple[Contact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLeaves:
    """Which nodes are in your leaf set?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRow:
    """Which nodes are in this row of your routing table?"""

    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The answer to both, and of the nodes that a JOIN passes: the sender knows these nodes."""

    contacts: tuple[Contact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """From the root of a new node's id: it may join; the sender and its leaf set. `hops`: of the JOIN."""

    contacts: tuple[Contact, ...]
    hops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """To a node that joins, or has joined while another one did: its id is taken, by the node at this address."""

    taken_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A message on its way to the root of a key. Each hop acknowledges it (`Got`) and puts itself on the path.

    `number`: of this message among those of its origin.  `path`: nodes that it has passed, the origin first.
    """

    key: bytes
    origin: Contact
    number: int
    path: tuple[Contact, ...] = ()

    def __post_init__(self) -> None:
        if len(self.key) != BYTES:
            from_bytes(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """To the hop before: this message of that origin is here."""

    origin: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Routed):
    """Of a node that wants to join, to its own id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry(Routed):
    """Of an application; `body` is bytes to the overlay. Raises LeewardError if they are too many.

    `lookup`: the number of its first attempt. The root may get one more than once.
    """

    lookup: int
    subject: str
    body: bytes = b""

    def __post_init__(self) -> None:
        Routed.__post_init__(self)
        if len(self.body) > LARGEST_BODY or len(self.subject) > LONGEST_NAME:
            raise LeewardError(
                f"body: {len(self.body)} bytes, subject: {len(self.subject)} characters.",
                remedy=f"At most {LARGEST_BODY} and {LONGEST_NAME} fit a message.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """To the origin of a `Carry`: the root has it. `path`: all nodes that it has passed, the root last.

    `body`: the answer of the root's application.
    """

    lookup: int
    path: tuple[Contact, ...]
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that may become a scheduler; `capacity`: of a machine, in units that all nodes share.

    Raises LeewardError if that is not finite.
    """

    contact: Contact
    capacity: float

    def __post_init__(self) -> None:
        if not isfinite(self.capacity):
            raise LeewardError(f"capacity {self.capacity}: it is not finite.", remedy="Send a number.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """To the next hop towards a zone's topic, once a period: the most capable members that the sender knows."""

    zone: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Routed):
    """Of a scheduler, to the topic of its zone: it serves so many applications."""

    zone: str
    scheduler: Candidate
    applications: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire(Routed):
    """Of a scheduler that leaves or is dismissed, to the topic of its zone."""

    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Anycast(Routed):
    """Of an application's owner, to the topic of its zone: which scheduler has room? `avoid`: not these nodes."""

    zone: str
    application: str
    avoid: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        Routed.__post_init__(self)
        for node in self.avoid:
            from_bytes(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer; `elected`: it is no scheduler yet, and becomes one as the application registers. `hops`: to here."""

    number: int
    application: str
    scheduler: Contact
    elected: bool
    hops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """From an application's owner to its scheduler, first and then twice a period: serve it. `elected`: as `Found`."""

    zone: str
    application: str
    elected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The answer; not `accepted`: the receiver is no scheduler of the zone, or serves as many as it may."""

    application: str
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """From an application's owner to its scheduler: it is over."""

    zone: str
    application: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Appoint:
    """From the root of a zone's topic to a member: be a scheduler."""

    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismiss:
    """From the root of a zone's topic to a scheduler: there are more than needed."""

    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskState:
    """From a client: how is this node?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateIs:
    """The answer. `state`: see `Peer`; `schedules`: it is a scheduler of its zone, and serves so many.

    `keeping`: the nodes of its leaf set that keep fragments, the nearest first.
    """

    me: Contact
    state: str
    leaves: tuple[Contact, ...]
    zone: str
    schedules: bool
    served: int
    keeping: tuple[Contact, ...] = ()


#: All types, in the order of their numbers in frames.
KINDS: tuple[type, ...] = (
    Heartbeat, Ping, Pong, Leave, AskLeaves, AskRow, Known, Welcome, Refused, Got, Join, Carry, Arrived, Members,
    Report, Retire, Anycast, Found, Register, Registered, Withdraw, Appoint, Dismiss,
    AskState, StateIs,
)  # fmt: skip
