"""Proof that a masked vector has no larger norm than its terms allow, checked on shares alone. Pure.

Four more integers complete the squared norm of a client's integers to c² (Lagrange; Lipmaa 2003, "On Diophantine complexity
and statistical zero-knowledge arguments"). So the proof is of one equation, ‖X‖² = c², over the integers: masks have 61 bits
and add up without a modulus (`NOISED_BITS`), so that each number is below 2⁶⁴, and no sum of squares reaches the modulus q.

The numbers are the matrix X of L rows and M columns. With random b, b' of each row, f_l(t) = Σ_j X_lj t^j + b_l t^M and
g_l(t) = Σ_j X_lj t^−j + b'_l t^M. The client sends p = Σ_l f_l·g_l under masks, but for the coefficient of t⁰: it must be c².
Each holder of a share evaluates it at one point, the hash of the upload. The server adds up the values and compares p with
Σ_l f_l·g_l there: a fully linear proof (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019, eprint 2019/188). A false equation
passes with probability 3M/q < 2⁻¹⁴⁶ for each hash that a liar tries. By b and b' the values are uniform: nothing of X shows.
"""

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np

from common.arrays import Array, Floats, Ints
from common.errors import WireError
from common.secure.masking import MASKED, SEED, Unsigned, expand, keystream, total_mask
from common.secure.terms import NOISED_BITS, read_base64

SQUARES = 4
"""Numbers of the upload beside those of the sum."""

MOST_SEEDS = 5
"""Number of masks of 61 bits that stay below 2⁶⁴ together: one of each helper."""

_Q, _WIDTH = 2**160 - 47, 20
"""Prime modulus q of the proof, and bytes of a number below it."""

_LIMB, _LIMBS = 3, 7
"""Bytes of a limb, limbs of a number: products of limbs of 16 and 24 bits add up exactly in float64."""

_POINT, _SEED, _BLINDS = b"fedloom/norm-point/1\n", b"fedloom/norm-seed/1\n", b"fedloom/norm-blinds/1\n"
"""Starts of hashed bytes: those of one purpose serve no other."""


def complete(numbers: Ints, bound: int) -> Ints:
    """Return numbers and four more, which complete their squared norm to c².

    Args:
        numbers: Integers of norm at most c.
        bound: Integer clip c.
    """
    return np.concatenate([numbers, np.array(four_squares(bound * bound - int(numbers @ numbers)), np.int64)])


def four_squares(number: int) -> tuple[int, int, int, int]:
    """Return four integers whose squares add up to a number; Lagrange (1770) shows that they exist.

    Raises:
        ValueError: The number is negative.
    """
    if number and number % 4 == 0:  # such numbers can have few squares, all of them even
        first, second, third, fourth = four_squares(number // 4)
        return 2 * first, 2 * second, 2 * third, 2 * fourth
    return next(_squares(number))


def _squares(number: int) -> Iterator[tuple[int, int, int, int]]:
    for first in range(math.isqrt(number), -1, -1):
        rest = number - first * first
        for second in range(math.isqrt(rest), -1, -1):
            left = rest - second * second
            third = math.isqrt(left)
            while 2 * third * third >= left:
                fourth = math.isqrt(left - third * third)
                if third * third + fourth * fourth == left:
                    yield first, second, third, fourth
                third -= 1


def proof_size(size: int, helpers: int) -> int:
    """Return the bytes of a proof: masked squares, coefficients of p, a commitment to each helper's seed."""
    return 8 * SQUARES + _WIDTH * (3 * _shape(size)[1] - 1) + SEED * helpers


def share_size(size: int) -> int:
    """Return the bytes of a helper's share."""
    return _WIDTH * (2 * _shape(size)[0] + 1)


def mask_bounded(numbers: Ints, bound: int, seeds: Sequence[bytes]) -> tuple[Unsigned, bytes]:
    """Return masked numbers, and the proof that their norm is at most c.

    Args:
        numbers: Integers of norm at most c, (d,).
        bound: Integer clip c.
        seeds: Seed of each helper's mask.
    """
    completed = complete(numbers, bound)
    masked = completed.astype(MASKED) + total_mask(seeds, completed.size, NOISED_BITS)
    proof = masked[numbers.size :].tobytes() + _prove(completed, seeds) + b"".join(map(commit_seed, seeds))
    return masked[: numbers.size], proof


def _prove(numbers: Ints, seeds: Sequence[bytes]) -> bytes:
    """Return the masked coefficients of p, for d + 4 numbers of squared norm c²."""
    rows, columns = _shape(numbers.size - SQUARES)
    matrix = _matrix(numbers, rows, columns).astype(np.float64)
    secret = [sum(column) for column in zip(*(_blinds(seed, rows, columns) for seed in seeds), strict=True)]
    blinds, masks = [blind % _Q for blind in secret[: 2 * rows]], secret[2 * rows :]
    spectrum = np.fft.rfft(matrix, 2 * columns, axis=1)
    shifted = np.rint(np.fft.irfft((spectrum.real**2 + spectrum.imag**2).sum(0), 2 * columns))[:columns]
    lags = [int(one) for one in shifted]
    products = (matrix.T @ _limbs(blinds).reshape(rows, 2 * _LIMBS)).astype(np.int64).reshape(columns, 2, _LIMBS)
    by_f, by_g = ([_join(one) for one in products[:, k].tolist()] for k in range(2))  # Σ_l b_l X_lj, Σ_l b'_l X_lj
    coefficients = lags[:0:-1] + [lags[e] + by_f[columns - e] for e in range(1, columns)]
    coefficients += [by_f[0] + by_g[0], *by_g[1:], sum(map(int.__mul__, blinds[::2], blinds[1::2]))]
    return b"".join(
        ((one + mask) % _Q).to_bytes(_WIDTH, "little") for one, mask in zip(coefficients, masks, strict=True)
    )


def commitment(masked: Unsigned, proof: bytes, helpers: int) -> str:
    """Return the commitment of an upload, base64: hash of numbers and proof, and commitments to its seeds."""
    seeds = len(proof) - SEED * helpers
    return base64.b64encode(hashlib.sha256(masked.tobytes() + proof[:seeds]).digest() + proof[seeds:]).decode()


def read_commitment(text: str, seed: bytes) -> bytes:
    """Return the bytes of a commitment, of which one part is that to a seed.

    Raises:
        WireError: It is malformed, or of other seeds.
    """
    content = read_base64(text, "a commitment")
    seeds = [content[k : k + SEED] for k in range(SEED, len(content), SEED)]
    if len(content) % SEED or len(seeds) > MOST_SEEDS or commit_seed(seed) not in seeds:
        raise WireError("a commitment is malformed, or of other seeds")
    return content


def share(seed: bytes, size: int, bound_by: bytes) -> bytes:
    """Return a helper's share of f, g and p at the point of a commitment; 2L + 1 numbers.

    A seed has one point only, since the client's signature of it covers the commitment.
    """
    (rows, columns), point = _shape(size), _point(bound_by)
    blinds, shift = _blinds(seed, rows, columns), pow(point, columns, _Q)
    values = _evaluate(_matrix(expand(seed, size + SQUARES, NOISED_BITS), rows, columns), point)
    shares = [(blind * shift - value) % _Q for blind, value in zip(blinds, values, strict=False)]
    shares.append(_polynomial(blinds[2 * rows :], columns, point))
    return b"".join(one.to_bytes(_WIDTH, "little") for one in shares)


def holds(masked: Unsigned, proof: bytes, bound: int, shares: Sequence[bytes]) -> bool:
    """Return True if the numbers behind the masks have a norm of at most c.

    Args:
        masked: Masked numbers of the sum, (d,).
        proof: Bytes of `proof_size`.
        bound: Integer clip c.
        shares: Share of each helper.
    """
    bound_by = base64.b64decode(commitment(masked, proof, len(shares)))
    (rows, columns), point = _shape(masked.size), _point(bound_by)
    squares, coefficients = np.frombuffer(proof, MASKED, SQUARES), proof[8 * SQUARES : len(proof) - SEED * len(shares)]
    sides = _evaluate(_matrix(np.concatenate([masked, squares]), rows, columns), point)
    total = _polynomial(_numbers(coefficients), columns, point) + bound * bound
    for one in map(_numbers, shares):
        sides = [value + other for value, other in zip(sides, one[:-1], strict=True)]
        total -= one[-1]
    return (total - sum(map(int.__mul__, sides[::2], sides[1::2]))) % _Q == 0


def commit_seed(seed: bytes) -> bytes:
    """Return the commitment to a seed, of 32 bytes."""
    return hashlib.sha256(_SEED + seed).digest()


def _shape(size: int) -> tuple[int, int]:
    """Return L and M of d numbers and four more: columns are a power of two near √d."""
    columns = 1 << max(2, round(math.log2(size + SQUARES) / 2))
    return -(-(size + SQUARES) // columns), columns


def _matrix(numbers: Array, rows: int, columns: int) -> Array:
    return np.concatenate([numbers, np.zeros(rows * columns - numbers.size, numbers.dtype)]).reshape(rows, columns)


def _blinds(seed: bytes, rows: int, columns: int) -> list[int]:
    """Return a helper's parts of b and b' of each row in turn, and of the masks of the coefficients."""
    key = hashlib.sha256(_BLINDS + seed).digest()
    return _numbers(keystream(key, _WIDTH * (2 * rows + 3 * columns - 1)))


def _numbers(content: bytes) -> list[int]:
    return [int.from_bytes(content[k : k + _WIDTH], "little") for k in range(0, len(content), _WIDTH)]


def _point(bound_by: bytes) -> int:
    return 1 + int.from_bytes(hashlib.sha512(_POINT + bound_by).digest(), "little") % (_Q - 1)


def _powers(base: int, count: int) -> list[int]:
    powers = [1]
    for _ in range(count - 1):
        powers.append(powers[-1] * base % _Q)
    return powers


def _polynomial(coefficients: Sequence[int], columns: int, point: int) -> int:
    """Return Σ p_e t^e mod q over e from −(M − 1) to 2M, without e = 0."""
    powers = _powers(point, 3 * columns)
    del powers[columns - 1]
    return sum(map(int.__mul__, coefficients, powers)) * pow(point, 1 - columns, _Q) % _Q


def _limbs(numbers: Sequence[int]) -> Floats:
    """Return the limbs of numbers, (n, 7)."""
    content = b"".join(one.to_bytes(_LIMB * _LIMBS, "little") for one in numbers)
    digits = np.frombuffer(content, np.uint8).reshape(-1, _LIMBS, _LIMB).astype(np.float64)
    return np.asarray(digits @ 256.0 ** np.arange(_LIMB), np.float64)


def _join(limbs: Sequence[int]) -> int:
    return sum(limb << (8 * _LIMB * k) for k, limb in enumerate(limbs))


def _evaluate(matrix: Unsigned, point: int) -> list[int]:
    """Return Σ_j X_lj t^j and Σ_j X_lj t^−j of each row l in turn, mod q."""
    rows, columns = matrix.shape
    powers = (_limbs(_powers(base, columns)) for base in (point, pow(point, -1, _Q)))
    words = np.ascontiguousarray(matrix).view("<u2").reshape(rows * columns, 4).T.astype(np.float64)
    products = (words.reshape(4 * rows, columns) @ np.concatenate([*powers], axis=1)).astype(np.int64)
    digits = np.zeros((2 * rows, _LIMB * _LIMBS + 2 * 4 + 8), np.int64)  # products of limbs reach 8 bytes
    for word, one in enumerate(products.reshape(4, 2 * rows, _LIMBS)):
        digits[:, 2 * word : 2 * word + _LIMB * _LIMBS : _LIMB] += one
    for k in range(digits.shape[1] - 1):
        digits[:, k + 1] += digits[:, k] >> 8
    content, width = digits.astype(np.uint8).tobytes(), digits.shape[1]
    return [int.from_bytes(content[k : k + width], "little") % _Q for k in range(0, len(content), width)]
