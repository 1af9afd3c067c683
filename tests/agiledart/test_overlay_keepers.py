"""Nodes that keep fragments, as the others of their leaf sets know them."""

from __future__ import annotations

from random import Random

from leeward.policies.agiledart.overlay.ids import id_of, nearness
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.platform.play import Network, Play

NODES = 40
#: Every third node keeps none.
KEEPS = [at for at in range(NODES) if at % 3]


def test_each_node_knows_which_of_its_leaf_set_keep_fragments_the_nearest_first():
    play = Play(Network(delay_s=lambda a, b: 0.02), Random(3))
    for at in range(NODES):
        peer = Peer(contact(id_of(str(at)), at), times=play.times, seeds=tuple(range(min(at, 3))))
        peer.neighbours.keeps = at in KEEPS
        play.add(peer)
        play.beats(0.3)
    play.beats(6)
    assert_known(play)
    gone = [contact.at for contact in play.peers[0].neighbours.keeping()[:3]]
    play.kill(gone)
    play.beats(8)
    assert not set(gone) & {contact.at for contact in play.peers[0].neighbours.keeping()}
    play.peers[1].neighbours.keeps = False
    play.beats(3)
    assert_known(play, without=1)


def assert_known(play: Play, without: int = -1) -> None:
    for peer in play.peers.values():
        expected = [leaf for leaf in peer.neighbours.leaves() if leaf.at in KEEPS and leaf.at != without]
        expected.sort(key=lambda leaf: nearness(leaf.id, peer.contact.id))
        assert list(peer.neighbours.keeping()) == expected and expected
