"""The reservations of one server for tasks: its part of a map, visit by visit, each with a lease."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from leeward.core.peers import Send
from leeward.policies.bimodal.mapping.gossip import Fact
from leeward.policies.bimodal.mapping.messages import Granted, OnWay, Probe, Release, Renew, Reserve, Undo
from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Network
from leeward.policies.bimodal.model.walk import Walk

#: (task, attempt, part): a part is the number of a visit of its walk, or a piece of another way (`sending.py`).
Name = tuple[str, int, Hashable]
P = TypeVar("P", bound=Probe)


@dataclass(slots=True)
class _Held:
    amounts: dict[Resource, float]
    until: float


class Reservations:
    """See the module. Both ends of a link keep its account, so neither can promise more than the other has.

    `alone`: the account is this server's; else all servers use one, and the sender enters what a link carries.
    """

    def __init__(
        self, me: int, network: Network, account: Account, fact: Callable[[], Fact], *, alone: bool = True
    ) -> None:
        """`fact`: gives the facts of this server as they are now."""
        self._me, self._network, self._account, self._fact, self._alone = me, network, account, fact, alone
        self._held: dict[Name, _Held] = {}

    @property
    def tasks(self) -> frozenset[str]:
        """Tasks for which something is reserved."""
        return frozenset(name for name, _, _ in self._held)

    def reserve(self, probe: Reserve, until: float) -> list[Send]:
        """Take this server's part, which it does not hold yet, and pass the probe on towards the source; or undo what
        the servers behind took."""
        name, amounts = _name(probe), self._part(probe)
        if not self.hold(name, amounts, until):
            return self._back(probe, news=(self._fact(),))
        return self._onward(probe)

    def holds(self, probe: Reserve) -> bool:
        """This server's part of it is held."""
        return _name(probe) in self._held

    def renew(self, probe: Renew, until: float) -> list[Send]:
        """Extend the lease, and pass it on; without a part that is still held here it ends, and so do the others."""
        held = self._held.get(_name(probe))
        if held is None:
            return []
        held.until = until
        return self._onward(probe)

    def release(self, probe: Release) -> list[Send]:
        """Give this part back, and pass it on."""
        self.drop(_name(probe))
        return [] if probe.position == 0 else [_to(probe, probe.position - 1, Release)]

    def undo(self, probe: Undo) -> list[Send]:
        """Give this part back, and pass it on towards the delivery server."""
        self.drop(_name(probe))
        return self._back(probe, news=probe.news)

    def expire(self, now: float) -> None:
        """Give back whatever was not renewed in time."""
        for name in [name for name, held in self._held.items() if held.until <= now]:
            self.drop(name)

    # --- parts by name

    def __contains__(self, name: Name) -> bool:
        """This part is held."""
        return name in self._held

    def hold(self, name: Name, amounts: Mapping[Resource, float], until: float) -> bool:
        """Take a part, or extend the lease of one that is held; False if there is no room."""
        held = self._held.get(name)
        if held is None:
            if not self._account.fits(amounts):
                return False
            self._account.take(amounts)
            held = self._held[name] = _Held(dict(amounts), until)
        held.until = until
        return True

    def drop(self, name: Name) -> None:
        """Give a part back, if it is held."""
        held = self._held.pop(name, None)
        if held is not None:
            self._account.give_back(held.amounts)

    def shrink(self, name: Name, amounts: Mapping[Resource, float]) -> None:
        """Give some of a part back, if it is held."""
        held = self._held.get(name)
        if held is None:
            return
        back = {resource: min(amount, held.amounts.get(resource, 0.0)) for resource, amount in amounts.items()}
        self._account.give_back(back)
        for resource, amount in back.items():
            held.amounts[resource] = held.amounts.get(resource, 0.0) - amount

    def _part(self, probe: Probe) -> dict[Resource, float]:
        """Of this visit: CPU, the hop from here on, and the hop over a link to here."""
        visits, task = probe.walk.visits, probe.spec
        here: Walk = visits[probe.position]
        amounts: dict[Resource, float] = defaultdict(float)
        if here.ran:
            amounts[Resource("cpu", self._me)] = sum(task.cpu[here.done - here.ran : here.done])
        if probe.position + 1 < len(visits):
            amounts[hop_resource(self._network, self._me, visits[probe.position + 1].link)] += task.bandwidth[here.done]
        if here.link >= 0 and here.before is not None and self._alone:
            amounts[hop_resource(self._network, here.before.at, here.link)] += task.bandwidth[here.before.done]
        return dict(amounts)

    def part_of_way(self, message: OnWay) -> dict[Resource, float]:
        """This server's part of a way: the hops to here and from here on. Raises KeyError for another's link."""
        servers, links, at = message.servers, message.links, message.position
        amounts: dict[Resource, float] = defaultdict(float)
        if at < len(links):
            amounts[hop_resource(self._network, self._me, links[at])] += message.need
        if at > 0 and self._alone:
            amounts[hop_resource(self._network, servers[at - 1], links[at - 1])] += message.need
        return dict(amounts)

    def _onward(self, probe: Reserve | Renew) -> list[Send]:
        """Towards the source; from there the delivery server is told."""
        if probe.position == 0:
            return [Send(probe.spec.delivery, Granted(task=probe.task, attempt=probe.attempt))]
        return [_to(probe, probe.position - 1, type(probe))]

    def _back(self, probe: Probe, *, news: tuple[Fact, ...]) -> list[Send]:
        """Towards the delivery server, which hears of it in any case."""
        last = len(probe.walk.visits) - 1
        if probe.position < last:
            return [_to(probe, probe.position + 1, Undo, news)]
        return [] if isinstance(probe, Undo) else [_to(probe, last, Undo, news)]


def _name(probe: Probe) -> Name:
    return probe.task, probe.attempt, probe.position


def _to(probe: Probe, position: int, kind: type[P], news: tuple[Fact, ...] = ()) -> Send:
    """The probe as a message of this kind to the server of another visit."""
    message = kind(
        task=probe.task, attempt=probe.attempt, spec=probe.spec, walk=probe.walk, position=position, news=news
    )
    return Send(probe.walk.visits[position].at, message)
