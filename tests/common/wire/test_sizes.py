"""Sizes of messages from shapes, against those of the codec."""

import random

import numpy as np
import torch
from safetensors.numpy import save

from common.arrays import Array, Arrays
from common.wire.codec import decode, encode, hand_over
from common.wire.messages import TrainReply
from common.wire.sizes import CODES, StackedArray, blob_sizes
from common.wire.sparse_rows import compress, named_rows, stacked_sizes
from server.exchange import content_size


def array_of(name: str, array: Array) -> StackedArray:
    rest = array.shape[1:] if array.ndim else None
    return StackedArray(name, array.dtype.name, np.ones(1, bool), np.array(array.shape[:1] or (1,)), rest)


def test_sizes_of_files_equal_those_of_safetensors() -> None:
    source = random.Random(0)
    for _ in range(300):
        names = [f"{'n' * source.randint(1, 9)}{k}" for k in range(source.randint(0, 8))]
        shapes = [[source.randint(0, 30) for _ in range(source.randint(0, 3))] for _ in names]
        arrays = {n: np.zeros(s, source.choice([*CODES])) for n, s in zip(names, shapes, strict=True)}
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
            handed = hand_over(reply, sizes[k])
            assert content_size(handed) == content_size(encode(TrainReply(1, sent, {}, 0.5, 3, 2)))
            assert decode(TrainReply, handed) is reply


def test_gathered_rows_count_the_bytes_of_their_encoding() -> None:
    stacked: Arrays = {"a": np.ones((3, 12, 4), np.float32), "b": np.ones((3, 7), np.float32)}
    gathered = np.array([12, 1, 7])
    prefixed = {f"update/{n}": a for n, a in stacked.items()}
    sizes = stacked_sizes(3, prefixed, {"update/a": gathered}, compressed=True)
    for k, rows in enumerate(gathered.tolist()):
        sent = {**named_rows("a", np.arange(rows) * 9, stacked["a"][k, :rows]), "b": stacked["b"][k]}
        reply = TrainReply(1, sent, {}, 0.5, 3, 2)
        assert content_size(hand_over(reply, sizes[k])) == content_size(encode(reply))
