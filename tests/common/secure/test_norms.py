"""Proofs of norms on shares: true ones hold; longer vectors, changed bytes and numbers that wrap around do not."""

import base64
import itertools
import random
import secrets
from collections.abc import Sequence

import numpy as np
import pytest

from common.arrays import Ints
from common.errors import WireError
from common.secure import norms
from common.secure.masking import MASKED, SEED
from tests.support.mutations import TIMES, mutated

BOUND = 1024


def vector(size: int, norm: float) -> Ints:
    drawn = np.random.default_rng(size).standard_normal(size)
    return np.trunc(drawn * (norm / np.linalg.norm(drawn))).astype(np.int64)


def exact_proof(numbers: Ints, seeds: Sequence[bytes]) -> bytes:
    """Return the proof of any numbers, multiplied out in exact integers: the best that a liar can send."""
    rows, columns = norms._shape(numbers.size - norms.SQUARES)
    matrix = norms._matrix(numbers, rows, columns).tolist()
    secret = [sum(column) for column in zip(*(norms._blinds(seed, rows, columns) for seed in seeds), strict=True)]
    product = dict.fromkeys(range(1 - columns, 2 * columns + 1), 0)
    for row, (one, other) in zip(
        matrix, zip(secret[: 2 * rows : 2], secret[1 : 2 * rows : 2], strict=True), strict=True
    ):
        for (i, x), (j, y) in itertools.product(enumerate([*row, one]), enumerate([*row, other])):
            product[i + (columns if j == columns else -j)] += x * y
    del product[0]
    masked = [(one + mask) % norms._Q for one, mask in zip(product.values(), secret[2 * rows :], strict=True)]
    return b"".join(one.to_bytes(20, "little") for one in masked)


def test_the_proof_is_the_product_of_both_polynomials() -> None:
    seeds = [secrets.token_bytes(SEED) for _ in range(3)]
    for size in (1, 7, 100):
        numbers = norms.complete(vector(size, BOUND), BOUND)
        assert norms._prove(numbers, seeds) == exact_proof(numbers, seeds)


def check(numbers: Ints, helpers: int = 2, *, completed: Ints | None = None, flip: int = -1, spoil: int = -1) -> bool:
    """Return the verdict on numbers; a byte of the proof is changed before it is sealed, or a byte of a share."""
    seeds = [secrets.token_bytes(SEED) for _ in range(helpers)]
    with pytest.MonkeyPatch.context() as patch:
        if completed is not None:
            patch.setattr(norms, "complete", lambda numbers, bound: completed)
            patch.setattr(norms, "_prove", exact_proof)
        masked, proof = norms.mask_bounded(numbers, BOUND, seeds)
    assert len(proof) == norms.proof_size(numbers.size, helpers)
    if flip >= 0:
        proof = bytes([*proof[:flip], proof[flip] ^ 1, *proof[flip + 1 :]])
    text = norms.commitment(masked, proof, helpers)
    shares = [norms.share(seed, numbers.size, norms.read_commitment(text, seed)) for seed in seeds]
    if spoil >= 0:
        shares[0] = bytes([*shares[0][:spoil], shares[0][spoil] ^ 1, *shares[0][spoil + 1 :]])
    assert all(len(one) == norms.share_size(numbers.size) for one in shares)
    return norms.holds(masked, proof, BOUND, shares)


@pytest.mark.parametrize(("size", "helpers"), [(1, 2), (3, 5), (60, 2), (5_000, 3)])
def test_a_vector_within_the_bound_passes(size: int, helpers: int) -> None:
    assert check(vector(size, BOUND), helpers)
    assert check(np.zeros(size, np.int64), helpers)


def test_a_vector_beyond_the_bound_fails_with_every_completion() -> None:
    longer = np.array([BOUND, 1, 0])
    for squares in itertools.product((0, 1, -1), repeat=norms.SQUARES):
        assert not check(longer, completed=np.concatenate([longer, squares]))


@pytest.mark.parametrize("power", [16, 31, 32, 53, 60, 61, 62])
def test_numbers_whose_squares_wrap_around_fail(power: int) -> None:
    """Multiples of 2³² have squares of 0 mod 2⁶⁴; the equation is over the integers."""
    rest = np.array([*norms.four_squares(BOUND**2)])
    for large in ([1 << power], [1 << power, -(1 << power)], [1 << power] * 4):
        assert not check(np.array(large), completed=np.array([*large, *rest]))


def test_squares_that_are_zero_mod_q_exceed_what_masked_numbers_can_be() -> None:
    most = (4_000_000 + norms.SQUARES) * (1 << 64) ** 2
    assert most < 2**160 - 47
    with pytest.raises(ValueError, match="negative"):
        norms.complete(np.array([BOUND, 1]), BOUND)


def test_a_changed_byte_of_proof_or_share_fails() -> None:
    numbers = vector(60, BOUND / 2)
    within = norms.proof_size(60, 2) - 2 * SEED
    assert not any(check(numbers, flip=place) for place in range(0, within, 37))
    assert not any(check(numbers, spoil=place) for place in range(0, norms.share_size(60), 41))


def test_four_squares_add_up() -> None:
    for number in [*range(300), 1024**2, 8192**2, 7 * 4**11, 8192**2 - 1]:
        assert sum(one * one for one in norms.four_squares(number)) == number


def test_what_the_server_sees_does_not_depend_on_the_vector() -> None:
    """Values of f and g are uniform: sums over helpers and server of equal seeds differ from run to run."""
    numbers = vector(40, BOUND)
    firsts = set()
    for _ in range(50):
        seeds = [secrets.token_bytes(SEED) for _ in range(2)]
        masked, proof = norms.mask_bounded(numbers, BOUND, seeds)
        text = norms.commitment(masked, proof, 2)
        firsts.add(norms.share(seeds[0], 40, norms.read_commitment(text, seeds[0]))[:20])
    top = [one[-1] for one in firsts]
    assert len(firsts) == 50
    assert 60 < np.mean(top) < 195


def test_mutated_commitments_are_typed_errors() -> None:
    chance, seed = random.Random(5), bytes(range(32))
    masked, proof = norms.mask_bounded(vector(6, BOUND), BOUND, [seed, bytes(32)])
    text = norms.commitment(masked, proof, 2)
    assert masked.dtype == MASKED
    assert len(norms.read_commitment(text, seed)) == 3 * SEED
    with pytest.raises(WireError, match="of other seeds"):
        norms.read_commitment(text, bytes(range(1, 33)))
    accepted = 0
    for _ in range(10_000 * TIMES):
        try:
            accepted += norms.read_commitment(str(mutated(chance, text)), seed) != base64.b64decode(text)
        except WireError:
            continue
    assert accepted < 10_000
