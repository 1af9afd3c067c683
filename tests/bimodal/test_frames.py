"""Frames between agents: every message comes through as it was, and a faulty frame is dropped by its kind of fault."""

from __future__ import annotations

import random

import pytest

from leeward.adapters.frames import LARGEST, LENGTH, MAC, FrameError, Opener, Sealer, length_of
from leeward.policies.bimodal.mapping.gossip import Fact, LinkFact
from leeward.policies.bimodal.mapping.messages import KINDS, Ack, Gossip, Told
from leeward.policies.bimodal.mapping.play import agents_of, gossip_round
from leeward.policies.bimodal.mapping.rules import Exhaustive, LeastCost, Method
from tests.helpers.bimodal_builders import tiny

KEY = b"k" * 32


def body(frame: bytes) -> bytes:
    return frame[LENGTH.size :]


def test_every_message_of_a_mapping_comes_through_as_it_was():
    seen: set[type] = set()
    for seed in range(60):
        network, task = tiny(random.Random(seed), uplinks=True)
        agents = agents_of(network, Method(rule=Exhaustive() if seed % 2 else LeastCost(), public=True))
        sealers = {v: Sealer(KINDS, KEY, v, 1) for v in agents}
        opener, rng = Opener(KINDS, KEY), random.Random(seed)
        queue = [(v, send) for v, agent in agents.items() for send in agent.gossip(sorted(agents), 0.0, rng)]
        queue += [(task.delivery, send) for send in agents[task.delivery].submit(task, 0.0)]
        for _ in range(500):
            if not queue:
                break
            sender, (to, message) = queue.pop(0)
            frame = sealers[sender].seal(message)
            assert length_of(frame[: LENGTH.size]) == len(body(frame))
            received = opener.open(body(frame))
            assert received == (sender, message) and type(received.message) is type(message)
            seen.add(type(message))
            queue += [(to, send) for send in agents[to].receive(sender, received.message, 0.0, rng)]
    assert {kind.__name__ for kind in seen} >= {"Gossip", "Map", "Ack", "Reserve", "Granted"}
    told = Told(task="t", status="", walk=None)
    assert opener.open(body(Sealer(KINDS, KEY, -1, 1).seal(told))).message == told


def test_a_frame_that_somebody_without_the_key_has_made_or_changed_is_forged():
    frame = body(Sealer(KINDS, b"another key", 3, 1).seal(Ack(task="t", turn=1, last=True)))
    with pytest.raises(FrameError) as caught:
        Opener(KINDS, KEY).open(frame)
    assert caught.value.kind == "forged"
    good = bytearray(body(Sealer(KINDS, KEY, 3, 1).seal(Ack(task="t", turn=1, last=True))))
    for position in range(len(good)):
        changed = bytes(good[:position]) + bytes([good[position] ^ 1]) + bytes(good[position + 1 :])
        with pytest.raises(FrameError) as caught:
            Opener(KINDS, KEY).open(changed)
        assert caught.value.kind == "forged"


def test_a_frame_is_taken_once_and_never_after_a_newer_process_of_its_sender():
    opener, old, new = Opener(KINDS, KEY), Sealer(KINDS, KEY, 3, 1), Sealer(KINDS, KEY, 3, 2)
    first, second = (body(old.seal(Ack(task="t", turn=1, last=True))) for _ in range(2))
    opener.open(first)
    for frame in (first, body(new.seal(Ack(task="t", turn=1, last=True))), second):
        if frame in (first, second):
            with pytest.raises(FrameError) as caught:
                opener.open(frame)
            assert caught.value.kind == "repeated"
        else:
            opener.open(frame)


@pytest.mark.parametrize("kinds", [KINDS[:1], KINDS[::-1]])
def test_a_message_of_another_form_is_malformed(kinds: tuple[type, ...]):
    frame = body(Sealer(kinds if len(kinds) > 1 else (Ack,), KEY, 3, 1).seal(Ack(task="t", turn=1, last=True)))
    with pytest.raises(FrameError) as caught:
        Opener(KINDS[:1], KEY).open(frame)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("length", [0, MAC, LARGEST + 1, 2**32 - 1])
def test_a_length_that_makes_no_sense_is_malformed(length: int):
    with pytest.raises(FrameError) as caught:
        length_of(LENGTH.pack(length))
    assert caught.value.kind == "malformed"


def unchecked(kind: type, **values: object) -> object:
    """As a faulty agent has it."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


LINK = {"number": 0, "to": 1, "bandwidth": 1.0, "used": 0.0, "cost": 1.0, "delay": 0.0}
FACT = {
    "server": 0, "version": 1, "cpu": 1.0, "cpu_used": 0.0, "uplink": 0.0, "uplink_used": 0.0,
    "services": frozenset(), "links": (), "paths": (),
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu": -1.0},
        {"uplink": -1.0},
        {"paths": ((1, -0.5),)},
        {"links": (unchecked(LinkFact, **{**LINK, "bandwidth": -1.0}),)},
        {"links": (unchecked(LinkFact, **{**LINK, "to": 0}),)},
    ],
)
def test_facts_that_make_no_sense_are_malformed(wrong: dict[str, object]):
    good = Fact(**FACT)
    assert Opener(KINDS, KEY).open(body(Sealer(KINDS, KEY, 3, 1).seal(Gossip(facts=(good,))))).message.facts == (good,)
    bad = unchecked(Fact, **{**FACT, **wrong})
    with pytest.raises(FrameError) as caught:
        Opener(KINDS, KEY).open(body(Sealer(KINDS, KEY, 3, 1).seal(Gossip(facts=(bad,)))))
    assert caught.value.kind == "malformed"


def test_gossip_ends_when_all_know_all():
    network, _ = tiny(random.Random(2))
    agents = agents_of(network, Method(surveys=True, public=True))
    rounds = 0
    while gossip_round(agents, now=0.0, rng=random.Random(1)):
        rounds += 1
        assert rounds < 50
    assert all(len(agent.knowledge) == len(network.servers) for agent in agents.values())
