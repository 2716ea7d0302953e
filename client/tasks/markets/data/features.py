"""Feature vectors of items, from their text or their id (algorithms.md §5.7).

Hashing needs no vocabulary. Every client computes the same vector for the same text, whatever its other items are.
scikit-learn takes 60 MB, so it is imported where items have texts.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from client.data.dataset import own_rng
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
    """Hash words, pairs of words and runs of 3 to 5 letters with signs; project to `width` (§5.7 a)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=BUCKETS, ngram_range=(1, 2), dtype=np.float32)
    letters = HashingVectorizer(n_features=BUCKETS, ngram_range=(3, 5), analyzer="char_wb", dtype=np.float32)
    projection = _projection(width)
    blocks = [
        projection.transform(hstack([words.transform(some), letters.transform(some)], format="csr"))
        for some in (texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE))
    ]
    return _unit(np.concatenate([block.toarray() for block in blocks]))


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
def _projection(width: int) -> Any:
    from sklearn.random_projection import SparseRandomProjection

    return SparseRandomProjection(width, random_state=SEED).fit(np.zeros((1, 2 * BUCKETS), np.float32))


def _unit(rows: NDArray[Any]) -> Floats32:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths < 10 * np.finfo(lengths.dtype).eps] = 1  # a row of zeros stays
    unit: Floats32 = (rows / lengths[:, None]).astype(np.float32)
    return unit
