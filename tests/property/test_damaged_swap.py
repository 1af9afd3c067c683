"""A damaged file of the swap area gives the state that was written, or the error by which an older cut is taken."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import SnapshotError
from leeward.runtime.state import snapshot
from leeward.runtime.state.store import TaskStore

CUT, TASK = 3, 5
STATE = {7: {"a": [1, 2.5], "b": "é"}, 9: {("x", 1): b"\x00"}, 11: {}}
RECORD = {"owned": [*STATE], "full": [*STATE], "swap": [*STATE], "node": "n1"}
BLOBS = {group: snapshot.encode(entries, cut=CUT, owner="count") for group, entries in STATE.items()}
SIZE = len(msgpack.packb(BLOBS))


class Directory:
    """Redis with the record of this task alone."""

    def hgetall(self, key):
        return {str(TASK).encode(): msgpack.packb(RECORD)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A task's store, and its swap file."""
    swap = tmp_path_factory.mktemp("swap")
    store = TaskStore("redis://127.0.0.1:1/0", "t-1", "count", TASK, node="n1", swap=swap)
    store._redis = Directory()
    store._write_swap(CUT, BLOBS)
    (file,) = (swap / "t-1").glob("*.swap")
    return store, file


def is_refused_or_whole(stored, packed):
    store, file = stored
    file.write_bytes(packed)
    try:
        entries, _ = store.load(CUT, STATE)
    except SnapshotError:
        return
    assert entries == STATE


@given(length=st.integers(0, SIZE - 1))
def test_a_file_that_ends_too_soon_is_refused(stored, length):
    store, file = stored
    file.write_bytes(msgpack.packb(BLOBS)[:length])
    with pytest.raises(SnapshotError, match=f"cut 3, count: swap file {file} cannot be read"):
        store.load(CUT, STATE)


@given(place=st.integers(0, SIZE - 1), value=st.integers(0, 255))
def test_no_changed_byte_gives_another_state(stored, place, value):
    packed = bytearray(msgpack.packb(BLOBS))
    packed[place] = value
    is_refused_or_whole(stored, packed)


@given(packed=st.binary(max_size=64) | st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(7, 11), inner, max_size=3),
).map(msgpack.packb))  # fmt: skip
def test_whatever_a_file_has_a_task_reports_a_bad_cut(stored, packed):
    is_refused_or_whole(stored, packed)


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "Unpack failed: incomplete input"),
        (bytes(SIZE), "unpack\\(b\\) received extra data"),
        (msgpack.packb([1, 2]), "it is no map of groups to bytes"),
        (msgpack.packb({7: "text"}), "it is no map of groups to bytes"),
        (b"\x81\x90\x07", "unhashable type: 'list'"),
    ],
)
def test_a_damaged_file_is_named_with_its_damage(stored, packed, why):
    store, file = stored
    file.write_bytes(packed)
    with pytest.raises(SnapshotError, match=f"swap file {file} cannot be read: {why}"):
        store.load(CUT, STATE)


def test_a_file_that_the_system_does_not_read_is_a_bad_cut(stored):
    store, file = stored
    file.unlink()
    file.mkdir()
    try:
        with pytest.raises(SnapshotError, match=r"swap file .* cannot be read: .*Is a directory"):
            store.load(CUT, STATE)
    finally:
        file.rmdir()
