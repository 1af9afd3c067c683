"""Whatever can travel arrives as it was, however the bytes are cut."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import LeewardError
from leeward.runtime.pipe.forms import BinaryForm, JsonForm
from tests.helpers.pipe_twin import MAGIC, Twin, same

text = st.text(st.characters(exclude_categories=["Cs"]))
scalar = st.none() | st.booleans() | st.integers() | st.floats() | text | st.binary()
keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text
values = st.recursive(scalar, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


@pytest.mark.long
@given(st.lists(st.lists(values, max_size=5), max_size=6), st.data())
def test_what_a_task_emits_reaches_the_next_one_as_it_was(tuples, data):
    sender, receiver, twin = BinaryForm(ids=False), BinaryForm(ids=False), Twin(ids=False)
    number, definition = sender.stream("default")
    out = sender.batch([definition, *(sender.emission(number, tup) for tup in tuples)])
    cut = data.draw(st.integers(0, len(out)))
    arrived = [message["tuple"] for piece in (out[:cut], out[cut:]) for message in twin.messages(piece)]
    assert same(arrived, tuples)
    # what a worker writes for the next task are the same bytes behind a channel's number
    body = b"".join(b"\x00" + sender.emission(0, tup)[2:] for tup in tuples)
    onward = MAGIC + struct.pack(">I", len(body) + 5) + b"\xdd" + struct.pack(">I", 2 * len(tuples)) + body
    cut = data.draw(st.integers(0, len(onward)))
    pairs = receiver.take(onward[:cut]) + receiver.take(onward[cut:])
    assert same(pairs[1::2], tuples)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=5))
def test_json_carries_its_types_and_names_bytes(tup):
    form = JsonForm()
    number, _ = form.stream("default")
    emitted = form.emission(number, tup)
    onward = emitted.replace(b'"command":"emit"', b'"comp":"a","stream":"s","task":1,"id":"7"', 1)
    assert same(form.take(onward), [-1, [0, "a", "s", 1, None], 0, [*tup, "7"]])


@given(st.binary(max_size=60))
def test_any_bytes_are_pairs_or_an_error_that_says_so(data):
    frame = MAGIC + struct.pack(">I", len(data)) + data
    try:
        assert len(BinaryForm(ids=False).take(frame)) % 2 == 0
    except LeewardError as error:
        assert "is damaged" in str(error)
