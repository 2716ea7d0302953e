"""Vectors of items: the same on every client, whatever else it sells."""

import numpy as np
import pytest
from scipy.sparse import hstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.random_projection import SparseRandomProjection

from client.tasks.markets.data.features import BUCKETS, SEED, hashed_ids, hashed_texts, item_features, weighted_words
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue, demo_market_catalogue, set_size

TEXTS = ("Steel cup set", "Steel cup", "Garden rake, long", "", "Steel cup set")
GOODS = MarketCatalogue(
    items=tuple("abcde"), titles=TEXTS, descriptions=("for coffee", "for coffee", "", " ", "for coffee")
)
ALL = np.arange(5)


def vectors(goods: MarketCatalogue = GOODS, items: np.ndarray = ALL, **options: object) -> np.ndarray:
    return item_features(goods, items, MarketsOptions.model_validate(options))


def test_hashing_agrees_between_clients_with_other_catalogues_and_orders() -> None:
    other = MarketCatalogue(
        items=("z", "b", "a"), titles=("Tent", TEXTS[1], TEXTS[0]), descriptions=("", "for coffee", "for coffee")
    )
    np.testing.assert_array_equal(vectors(other, np.array([2, 1])), vectors()[:2])


def test_hashing_gives_unit_vectors_that_are_alike_where_texts_are() -> None:
    X = vectors()
    assert X.shape == (5, 768)
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(X[0], X[4])
    assert X[0] @ X[1] > 0.5 > 0.3 > abs(X[0] @ X[2])


def test_hashing_has_the_bits_of_scikit_learn() -> None:
    texts = [
        "Steel cup set, x-ray don't",
        "Ünïcödé 日本語 テキスト",
        "a",
        "ab",
        "...",
        "\u00a0 tab\tnew\nline_under",
        "İstanbul ǅ",
    ]
    words = HashingVectorizer(n_features=BUCKETS, ngram_range=(1, 2), dtype=np.float32)
    letters = HashingVectorizer(n_features=BUCKETS, ngram_range=(3, 5), analyzer="char_wb", dtype=np.float32)
    projection = SparseRandomProjection(24, random_state=SEED).fit(np.zeros((1, 2 * BUCKETS), np.float32))
    X = projection.transform(hstack([words.transform(texts), letters.transform(texts)], format="csr")).toarray()
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    np.testing.assert_array_equal(hashed_texts(texts, 24), X / np.where(lengths, lengths, 1)[:, None])


def test_an_item_without_text_is_its_id() -> None:
    np.testing.assert_array_equal(vectors()[3], hashed_ids(["d"], 768)[0])
    np.testing.assert_array_equal(vectors(MarketCatalogue(items=tuple("abcde"))), hashed_ids(list("abcde"), 768))
    np.testing.assert_array_equal(vectors(features="ids", width=32), hashed_ids(list("abcde"), 32))


def test_hashing_is_the_same_on_every_machine() -> None:
    """Pinned: what differs here differs between clients of different versions."""
    assert vectors(width=16)[0].round(4).tolist() == PINNED


@pytest.mark.parametrize("width", [8, 768])
def test_weighted_words_find_the_sets_of_the_demo(width: int) -> None:
    goods = demo_market_catalogue()
    X = weighted_words(goods, width)
    assert X.shape == (len(goods.items), width)
    near = X[: set_size()] @ X.T
    assert np.median(near[:, : set_size()]) > np.median(near[:, set_size() :])
    np.testing.assert_array_equal(vectors(goods, np.array([5, 2]), features="tfidf", width=width), X[[5, 2]])


def test_texts_without_a_word_are_their_ids() -> None:
    letters = MarketCatalogue(items=tuple("abc"), titles=("x", "y", "z"))
    np.testing.assert_array_equal(weighted_words(letters, 8), hashed_ids(list("abc"), 8))
    np.testing.assert_array_equal(vectors(letters, np.array([1]), features="tfidf", width=8), hashed_ids(["b"], 8))
    some = MarketCatalogue(items=tuple("abcd"), titles=("Steel cup", "steel pot", "z", "cup & pot"))
    X = weighted_words(some, 8)
    np.testing.assert_allclose(X[2], hashed_ids(["c"], 8)[0], rtol=1e-6)
    assert X[0] @ X[3] > 0.3


PINNED = [
    0.3644999861717224,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    -0.8149999976158142,
    0.0,
    0.0,
    -0.4505000114440918,
]
