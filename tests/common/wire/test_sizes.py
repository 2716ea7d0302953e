"""Sizes of messages from shapes, against those of the codec."""

import random

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from common.arrays import Array, Arrays
from common.errors import WireError
from common.wire.codec import Handed, decode, encode, hand, size_without_arrays
from common.wire.messages import EvaluateReply, TrainReply
from common.wire.sparse_rows import DTYPE_CODES, StackedArray, blob_sizes, compress, named_rows, stacked_sizes
from server.exchange.grid import content_size


def array_of(name: str, array: Array) -> StackedArray:
    rest = array.shape[1:] if array.ndim else None
    return StackedArray(name, array.dtype.name, np.ones(1, bool), np.array(array.shape[:1] or (1,)), rest)


def test_sizes_of_files_equal_those_of_safetensors() -> None:
    source = random.Random(0)
    for _ in range(300):
        names = [f"{'n' * source.randint(1, 9)}{k}" for k in range(source.randint(0, 8))]
        shapes = [[source.randint(0, 30) for _ in range(source.randint(0, 3))] for _ in names]
        arrays = {n: np.zeros(s, source.choice([*DTYPE_CODES])) for n, s in zip(names, shapes, strict=True)}
        empty = StackedArray("", "bool", np.zeros(1, bool), np.zeros(1, np.int64), ())
        assert blob_sizes([empty, *(array_of(n, a) for n, a in arrays.items())]) == [len(save(arrays))]


def test_a_payload_that_is_handed_over_counts_the_bytes_of_its_encoding() -> None:
    generator = torch.Generator().manual_seed(0)
    tables = {"a": torch.randn(5, 40, 3, generator=generator), "b": torch.randn(5, 7, generator=generator)}
    keep = torch.rand(5, 40, 1, generator=generator) < torch.linspace(0, 1, 5)[:, None, None]
    stacked: Arrays = {"a": torch.where(keep, tables["a"], 0.0).numpy(), "b": tables["b"].numpy()}
    for is_sparse in (True, False):
        sizes = stacked_sizes(5, {f"update/{n}": a for n, a in stacked.items()}, {}, compressed=is_sparse)
        for k in range(5):
            whole = {n: a[k] for n, a in stacked.items()}
            sent = compress(whole) if is_sparse else whole
            reply = TrainReply(1, whole, {}, 0.5, 3, 2)
            handed = Handed(reply, size_without_arrays(reply) + sizes[k])
            assert content_size(handed) == content_size(encode(TrainReply(1, sent, {}, 0.5, 3, 2)))
            assert decode(TrainReply, handed) is reply
            assert content_size(hand(reply)) == content_size(encode(reply))
    evaluated = EvaluateReply(1, {"loss": 0.5}, {"loss": 3.0})
    assert content_size(hand(evaluated)) == content_size(encode(evaluated))


def test_a_payload_that_is_handed_over_is_not_another() -> None:
    with pytest.raises(WireError, match="expected EvaluateReply, got 'TrainReply'"):
        decode(EvaluateReply, Handed(TrainReply(1, {}, {}, 0.5, 3, 2), 0))


@pytest.mark.parametrize("numbers", [(1.0, 1.0), (0.0, 1.0), (0.0, -0.0), (0.0, 0.0)])
def test_rows_of_nearly_full_tables_count_if_any_bit_is_set(numbers: tuple[float, float]) -> None:
    tables = np.ones((3, 40, 2), np.float32)
    tables[1, 7] = numbers
    sizes = stacked_sizes(3, {"update/a": tables}, {}, compressed=True)
    assert sizes == [len(save({f"update/{n}": a for n, a in compress({"a": t}).items()})) for t in tables]


def test_gathered_rows_count_the_bytes_of_their_encoding() -> None:
    stacked: Arrays = {"a": np.ones((3, 12, 4), np.float32), "b": np.ones((3, 7), np.float32)}
    gathered = np.array([12, 1, 7])
    prefixed = {f"update/{n}": a for n, a in stacked.items()}
    sizes = stacked_sizes(3, prefixed, {"update/a": gathered}, compressed=True)
    for k, rows in enumerate(gathered.tolist()):
        sent = {**named_rows("a", np.arange(rows) * 9, stacked["a"][k, :rows]), "b": stacked["b"][k]}
        reply = TrainReply(1, sent, {}, 0.5, 3, 2)
        assert size_without_arrays(reply) + sizes[k] == content_size(encode(reply))
