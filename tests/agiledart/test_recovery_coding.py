"""Fragments: any m of n rebuild the state, in any order, and no changed byte goes unseen."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import ConfigError, SnapshotError
from leeward.policies.agiledart.recovery.coding import Layout, Manifest, Rebuild, decode, encode, layout_of


def encoded(state: bytes, m: int, k: int, unit: int = 8):
    return encode(state, Layout(size=len(state), m=m, k=k, unit=unit))


def holders(n: int) -> list[str]:
    return [f"h{number}" for number in range(n)]


@given(data=st.data())
def test_any_m_fragments_in_any_order_rebuild_the_state(data):
    m, k = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    state = data.draw(st.binary(max_size=300))
    made = encoded(state, m, k, unit=data.draw(st.integers(1, 40)))
    rebuild = Rebuild(Manifest.from_bytes(made.manifest(holders(m + k)).to_bytes()))
    chosen = data.draw(st.permutations(range(m + k)))[:m]
    blocks = [(stripe, index) for stripe in range(made.layout.stripes) for index in chosen]
    for stripe, index in data.draw(st.permutations(blocks)):
        assert rebuild.take(stripe, index, bytes(made.fragments[index][stripe]))
    assert rebuild.left == () and rebuild.state() == state


@given(data=st.data())
def test_a_changed_block_is_not_taken_and_the_state_is_right_without_it(data):
    state = data.draw(st.binary(min_size=1, max_size=200))
    made = encoded(state, 3, 2)
    rebuild = Rebuild(made.manifest(holders(5)))
    forger = data.draw(st.integers(0, 4))
    for index in data.draw(st.permutations(range(5))):
        for stripe in range(made.layout.stripes):
            block = bytearray(made.fragments[index][stripe])
            if index == forger:
                block[data.draw(st.integers(0, len(block) - 1))] ^= data.draw(st.integers(1, 255))
            assert rebuild.take(stripe, index, block) is (index != forger)
    assert rebuild.state() == state


def test_a_block_of_another_stripe_or_length_is_not_taken():
    made = encoded(bytes(range(64)), 2, 1)
    rebuild = Rebuild(made.manifest(holders(3)))
    assert not rebuild.take(0, 0, made.fragments[0][1])
    assert not rebuild.take(0, 0, made.fragments[1][0])
    assert not rebuild.take(0, 0, bytes(made.fragments[0][0]) + b"x")


def test_wanted_stripes_alone_are_rebuilt():
    state = random.Random(1).randbytes(1000)
    made = encoded(state, 4, 2)
    wanted = made.layout.stripes_of(100, 70)
    rebuild = Rebuild(made.manifest(holders(6)), wanted)
    assert rebuild.left == tuple(range(3, 6))
    for stripe in wanted:
        for index in (1, 3, 4, 5):
            rebuild.take(stripe, index, made.fragments[index][stripe])
    assert rebuild.state()[100:170] == state[100:170]


def test_fragments_below_m_are_views_of_the_state():
    state = bytearray(64)
    made = encoded(state, 4, 2)
    assert all(isinstance(block, memoryview) and block.obj is state for one in made.fragments[:4] for block in one)


def test_decoding_leaves_what_it_was_given_as_it_was():
    """zfec puts primary blocks of the caller's list into their places, but not their numbers."""
    made = encoded(bytes(range(32)), 4, 2)
    blocks = {index: bytes(made.fragments[index][0]) for index in (4, 1, 0, 5)}
    before = dict(blocks)
    assert b"".join(map(bytes, decode(blocks, 4, 6))) == bytes(range(32))
    assert blocks == before and list(blocks) == [4, 1, 0, 5]


def test_too_few_blocks_are_refused():
    with pytest.raises(ValueError, match="1 blocks are given, 2 are needed"):
        decode({0: b"a"}, 2, 3)


@pytest.mark.parametrize(("m", "k"), [(0, 2), (4, -1), (200, 57)])
def test_a_code_that_there_is_not_is_refused(m, k):
    with pytest.raises(ConfigError, match=f"m = {m} and k = {k}: there is no such code"):
        layout_of(1000, m, k)


@pytest.mark.parametrize("spoil", [lambda p: p[:-3], lambda p: b"\xc0", lambda p: b"", lambda p: p + b"x"])
def test_a_damaged_manifest_is_refused(spoil):
    packed = encoded(bytes(100), 4, 2).manifest(holders(6)).to_bytes()
    with pytest.raises(SnapshotError, match="a manifest cannot be read"):
        Manifest.from_bytes(spoil(packed))


def test_a_whole_that_is_not_the_encoded_one_is_refused():
    made = encoded(bytes(100), 2, 1)
    manifest = made.manifest(holders(3))
    other = Manifest(layout=manifest.layout, holders=manifest.holders, checksums=manifest.checksums, whole=bytes(16))
    rebuild = Rebuild(other)
    for stripe in range(made.layout.stripes):
        for index in (0, 1):
            rebuild.take(stripe, index, made.fragments[index][stripe])
    with pytest.raises(SnapshotError, match="not the one that was encoded"):
        rebuild.state()


def test_large_states_have_large_blocks_and_few_checksums():
    layout = layout_of(256 * 1024 * 1024, 4, 2)
    assert (layout.unit, layout.stripes) == (256 * 1024, 256)
    assert layout_of(1, 4, 2).stripes == 1 and layout_of(0, 4, 2).stripes == 0
