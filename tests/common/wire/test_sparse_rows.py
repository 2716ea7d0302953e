"""Row-sparse tables: equal to the full table, smaller if they can be, refused if they do not fit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.arrays import Arrays, check_like, norm, sha256, zeros_like
from common.errors import WireError
from common.wire.codec import decode, encode
from common.wire.messages import TrainReply
from common.wire.sparse_rows import check_rows, compress, expand, expand_reply, numbers_of

DTYPES = st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
NAMES = st.text(st.characters(exclude_characters="@", codec="utf-8"), max_size=5)
WHOLE = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES, fill=st.just(dtype(0))))
TABLE = np.zeros((40, 3), np.float32)
TABLE[[4, 17]] = np.array([[1, 0, -2], [0, 0, 0.5]])
SENT: Arrays = {"items@rows": np.array([4, 17], np.int32), "items@values": TABLE[[4, 17]]}


@given(st.dictionaries(NAMES, WHOLE, max_size=4))
def test_expand_inverts_compress_bit_for_bit(update: Arrays) -> None:
    before = sha256(update)
    sent = compress(update)
    assert sha256(expand(sent, zeros_like(update))) == sha256(update) == before
    assert sum(a.nbytes for a in sent.values()) <= sum(a.nbytes for a in update.values())


def test_a_table_with_few_changed_rows_is_sent_as_rows() -> None:
    sent = compress({"items": TABLE, "bias": np.zeros(40, np.float32)})
    assert {n: a.tolist() for n, a in sent.items()} == {
        "items@rows": [4, 17],
        "items@values": [[1, 0, -2], [0, 0, 0.5]],
        "bias": [0] * 40,
    }
    assert sent["items@rows"].dtype == np.int32


def test_rows_are_sent_only_if_that_is_smaller() -> None:
    """4 rows of 3 floats are 48 bytes; a changed row costs 12 + 4 for its id: 2 rows (32) are smaller, 3 (48) are not."""
    two, three = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    two[:2], three[:3] = 1, 1
    assert sorted(compress({"w": two})) == ["w@rows", "w@values"]
    assert sorted(compress({"w": three})) == ["w"]


def test_an_update_of_zeros_has_no_rows() -> None:
    sent = compress({"items": zeros_like({"t": TABLE})["t"]})
    assert (sent["items@rows"].shape, sent["items@values"].shape) == ((0,), (0, 3))
    assert not expand(sent, {"items": TABLE})["items"].any()


def test_minus_zero_is_restored() -> None:
    table = np.zeros((9, 2), np.float32)
    table[3, 1] = -0.0
    assert np.signbit(expand(compress({"w": table}), {"w": table})["w"]).sum() == 1


def test_full_tables_and_unknown_arrays_are_unchanged() -> None:
    received: Arrays = {"items": TABLE, "other": np.ones(2), "other@values": np.ones(1)}
    assert expand(received, {"items": TABLE}) == received


BAD: dict[str, tuple[Arrays, str]] = {
    "too large": ({"items@rows": np.array([4, 40], np.int32)}, "row ids are out of range; the table has 40 rows"),
    "negative": ({"items@rows": np.array([-1, 4], np.int64)}, "row ids are out of range"),
    "repeated": ({"items@rows": np.array([4, 4], np.int32)}, "repeated or not in ascending order"),
    "unsorted": ({"items@rows": np.array([17, 4], np.int32)}, "repeated or not in ascending order"),
    "float ids": ({"items@rows": np.array([4.0, 17.0])}, r"row ids are float64\[2\], expected a vector of int32"),
    "ids in a table": ({"items@rows": np.array([[4, 17]], np.int32)}, r"row ids are int32\[1, 2\]"),
    "fewer rows": ({"items@values": TABLE[[4]]}, r"rows are float32\[1, 3\], expected float32\[2, 3\]"),
    "wider rows": ({"items@values": np.ones((2, 4), np.float32)}, r"rows are float32\[2, 4\], expected"),
    "other type": ({"items@values": np.ones((2, 3))}, r"rows are float64\[2, 3\], expected float32\[2, 3\]"),
    "twice": ({"items": TABLE}, "are repeated"),
}


@pytest.mark.parametrize(("change", "reason"), BAD.values(), ids=BAD.keys())
def test_rows_that_do_not_fit_are_refused_by_name(change: Arrays, reason: str) -> None:
    for read in (expand, check_rows):
        with pytest.raises(WireError, match=f"gradient: array 'items': .*{reason}"):
            read(SENT | change, {"items": TABLE}, "gradient")


@pytest.mark.parametrize("template", [{}, {"items": TABLE[0]}], ids=["unknown", "no table"])
def test_rows_of_no_table_are_refused(template: Arrays) -> None:
    with pytest.raises(WireError, match="array 'items': rows belong to no table"):
        expand(SENT, template)


def test_rows_without_values_are_refused() -> None:
    with pytest.raises(WireError, match="lack their values"):
        expand({"items@rows": SENT["items@rows"]}, {"items": TABLE})


def test_a_refusal_quotes_no_ids() -> None:
    with pytest.raises(WireError) as caught:
        expand(SENT | {"items@rows": np.array([4, 7777], np.int32)}, {"items": TABLE})
    assert "7777" not in str(caught.value)


def test_a_reply_is_sent_smaller_and_restored_in_full() -> None:
    model = {"items": TABLE, "bias": np.ones(2, np.float32)}
    reply = TrainReply(1, model, {n: a * 2 for n, a in model.items()}, 0.5, 3, 1)
    arrived = decode(
        TrainReply, encode(replace(reply, update=compress(reply.update), gradient=compress(reply.gradient)))
    )
    assert sorted(arrived.gradient) == ["bias", "items@rows", "items@values"]
    back = expand_reply(arrived, model)
    assert (sha256(back.update), sha256(back.gradient)) == (sha256(reply.update), sha256(reply.gradient))
    assert expand_reply(replace(reply, gradient={}), model).gradient == {}


def test_rows_that_stay_rows_are_checked_like_whole_tables() -> None:
    model = {"items": TABLE, "bias": np.ones(2, np.float32)}
    received = {**SENT, "bias": np.ones(2, np.float32)}
    check_like(received, check_rows(received, model), "update")
    check_like(model, check_rows(model, model), "update")
    bad = {**received, "items@values": np.full((2, 3), np.nan, np.float32)}
    with pytest.raises(WireError, match="update: non-finite numbers"):
        check_like(bad, check_rows(bad, model), "update")
    for wrong in (SENT, {**received, "more": TABLE}, {**received, "bias": np.ones(3, np.float32)}):
        with pytest.raises(WireError, match=r"bias|more"):
            check_like(wrong, check_rows(wrong, model), "update")
    assert norm(numbers_of(received)) == norm({"items": TABLE, "bias": model["bias"]})
