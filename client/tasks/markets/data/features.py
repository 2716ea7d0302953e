"""Feature vectors of items, from their text or their id (algorithms.md §5.7).

Hashing needs no vocabulary. Every client computes the same vector for the same text, whatever its other items are.
scikit-learn takes 90 MB and PyTorch with it, so TF-IDF alone imports it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from client.data.dataset import own_rng
from client.tasks.markets.data.graph import Sparse
from common.arrays import Floats32, Ints
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue

BUCKETS = 2**18
"""Number of hash buckets for words, and as many for letters."""

AT_ONCE = 1024
"""Number of items hashed together; a long description has thousands of parts."""

SEED = 0
"""Seed of the projection and of hashed ids; it is the same on every client and in every run."""


def item_features(goods: MarketCatalogue, items: Ints, options: MarketsOptions) -> Floats32:
    """Return vectors of those items, n × width, each of length 1; items without text get hashed ids."""
    texts = [goods.text(item) for item in items.tolist()]
    vectors = hashed_ids([goods.items[item] for item in items.tolist()], options.width)
    described = np.array([bool(text) for text in texts], bool)
    if options.features == "ids" or not described.any():
        return vectors
    if options.features == "tfidf":
        vectors[described] = weighted_words(goods, options.width)[items[described]]
    else:
        vectors[described] = hashed_texts([text for text in texts if text], options.width)
    return vectors


def hashed_texts(texts: Sequence[str], width: int) -> Floats32:
    """Hash words, pairs of words and runs of 3 to 5 letters with signs; project to `width` (§5.7 a).

    The bits are those of scikit-learn's `HashingVectorizer` and `SparseRandomProjection`.
    """
    projection, blocks = _projection(width), list[Floats32]()
    for first in range(0, len(texts), AT_ONCE):
        some = [text.lower() for text in texts[first : first + AT_ONCE]]
        hashed = hstack([_hashed(map(_words, some)), _hashed(map(_letters, some))], format="csr")
        blocks.append((hashed @ projection).toarray())
    return _unit(np.concatenate(blocks))


def _words(text: str) -> list[str]:
    words: list[str] = re.findall(r"\b\w\w+\b", text)
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


def _letters(text: str) -> Iterator[str]:
    for word in text.split():
        padded = f" {word} "
        for n in range(3, 1 + min(5, len(padded))):
            yield from (padded[k : k + n] for k in range(len(padded) - n + 1))


def _hashed(rows: Iterable[Iterable[str]]) -> Sparse:
    """Return the signed counts of the hashed terms of each row, n × `BUCKETS`, each row of length 1."""
    numbers: dict[str, int] = {}
    found = [[numbers.setdefault(term, len(numbers)) for term in row] for row in rows]
    terms, ends = np.fromiter(chain(*found), np.int64), np.cumsum([0, *map(len, found)])
    hashes = _murmur([term.encode() for term in numbers])[terms]
    signs = np.where(hashes < 0, np.float32(-1), np.float32(1))
    counts = csr_array((signs, np.abs(hashes) % BUCKETS, ends), shape=(len(found), BUCKETS))
    counts.sum_duplicates()
    of_row = np.repeat(np.arange(len(found)), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(of_row, counts.data**2, len(found)))
    counts.data = (counts.data / np.where(lengths, lengths, 1)[of_row]).astype(np.float32)
    return counts


def _murmur(terms: Sequence[bytes]) -> Ints:
    """Return MurmurHash3 of each term, of 32 bits with a sign (Appleby 2011), with seed 0."""
    sizes = np.fromiter(map(len, terms), np.int64)
    hashes = np.zeros(len(terms), np.uint32)
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        letters = np.frombuffer(b"".join(terms[k] for k in rows.tolist()), np.uint8).reshape(len(rows), size)
        h = np.zeros(len(rows), np.uint32)
        for k, block in enumerate(np.pad(letters, ((0, 0), (0, -size % 4))).view("<u4").T):
            h ^= _rotated(block * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
            if k < size // 4:  # the last block may be shorter
                h = _rotated(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(size)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            h = (h ^ h >> np.uint32(shift)) * np.uint32(factor)
        hashes[rows] = h
    return hashes.view(np.int32).astype(np.int64)


def _rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return values << np.uint32(bits) | values >> np.uint32(32 - bits)


def hashed_ids(ids: Sequence[str], width: int) -> Floats32:
    """Return random directions, V × width, each drawn from an id alone."""
    drawn = np.zeros((len(ids), width), np.float32)
    for row, name in enumerate(ids):
        drawn[row] = own_rng(SEED, name).standard_normal(width, np.float32)
    return _unit(drawn)


@lru_cache(maxsize=2)
def weighted_words(goods: MarketCatalogue, width: int) -> Floats32:
    """Return TF-IDF of the public catalogue's texts, reduced by SVD, V × width (§5.7 b).

    Entries beyond the catalogue's rank are 0. Every direction's sign is fixed: its largest entry is positive. A text
    without a word of two letters is replaced by its item's id.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words, texts = (
        TfidfVectorizer(sublinear_tf=True, dtype=np.float32),
        [goods.text(k) for k in range(len(goods.items))],
    )
    if not any(map(words.build_analyzer(), texts)):
        return hashed_ids(goods.items, width)
    weights = words.fit_transform(texts)
    rank = min(width, *(size - 1 for size in weights.shape))
    if rank < 1:
        return hashed_ids(goods.items, width)
    svd = TruncatedSVD(rank, random_state=SEED)
    reduced = svd.fit_transform(weights)
    largest = np.abs(svd.components_).argmax(axis=1)
    reduced *= np.sign(svd.components_[np.arange(rank), largest])
    vectors, wordless = np.pad(reduced, ((0, 0), (0, width - rank))), np.flatnonzero(np.diff(weights.indptr) == 0)
    vectors[wordless] = hashed_ids([goods.items[k] for k in wordless.tolist()], width)
    return _unit(vectors)


@lru_cache(maxsize=2)
def _projection(width: int) -> Sparse:
    """Return sparse signs, 2·`BUCKETS` × width, as in Very Sparse Random Projections (Li et al. 2006)."""
    rng, size = np.random.RandomState(SEED), 2 * BUCKETS
    density, columns = 1 / np.sqrt(size), list[Ints]()
    for _ in range(width):
        count, column = rng.binomial(size, density), np.zeros(0, np.int64)
        while len(column) < count:  # those drawn twice are drawn again
            drawn = np.append(column, rng.randint(size, size=count - len(column)))
            column = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        columns.append(column)
    ends = np.cumsum([0, *map(len, columns)])
    values = (np.sqrt(1 / density) / np.sqrt(width) * (rng.binomial(1, 0.5, ends[-1]) * 2 - 1)).astype(np.float32)
    return csr_array(csr_array((values, np.concatenate(columns), ends), shape=(width, size)).T)


def _unit(rows: NDArray[Any]) -> Floats32:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths < 10 * np.finfo(lengths.dtype).eps] = 1  # a row of zeros stays
    unit: Floats32 = (rows / lengths[:, None]).astype(np.float32)
    return unit
