"""Proofs of a bounded norm: bytes of an upload and a client's time, with a proof and without.

`bits` shares each bit of each number, as Prio3 with its sum of bounded L2 norm does (draft-irtf-cfrg-vdaf). Its time is a lower
bound: masks of the bits alone. `projections` multiplies the vector by 256 random rows of signs, as ACORN and RoFL do, and
proves the range of the products. Its time is that of the signs and products alone. `squares` is ours (`common.secure.norms`).
"""

import secrets
import statistics
import time
from collections.abc import Callable

import numpy as np

from common.arrays import Ints
from common.secure.masking import MASKED, keystream, total_mask
from common.secure.norms import commitment, mask_bounded, proof_size
from common.secure.quantisation import integer_clip, quantise
from common.secure.terms import NOISED_BITS

SIZES = (10**4, 10**6)
HELPERS, TURNS = 2, 7
FIELD = 8
"""Bytes of a number of the field that `bits` and `projections` share their numbers in."""

PROJECTIONS, PRODUCT_BITS = 256, 32
"""Rows of signs, and bits of a product whose range is proven."""

ROWS = 16
"""Rows that are multiplied at once."""


def compare_proofs() -> list[dict[str, float]]:
    """Return bytes and milliseconds of each proof at each size."""
    return [_compare(size) for size in SIZES]


def _compare(size: int) -> dict[str, float]:
    bound, generator = integer_clip(size), np.random.default_rng(size)
    numbers = quantise(generator.standard_normal(size), 1.0, bound, "signed", generator)
    seeds, bits = [secrets.token_bytes(32) for _ in range(HELPERS)], (2 * bound).bit_length()
    plain = _time(lambda: numbers.astype(MASKED) + total_mask(seeds, size, NOISED_BITS))
    return {
        "numbers": size,
        "plain_bytes": 4 * size,
        "plain_ms": plain,
        "bits_bytes": FIELD * bits * size,
        "bits_ms": _time(lambda: [keystream(seed, FIELD * bits * size) for seed in seeds]),
        "projections_bytes": FIELD * (size + PROJECTIONS * PRODUCT_BITS),
        "projections_ms": _time(lambda: _project(numbers, seeds[0])),
        "squares_bytes": MASKED.itemsize * size + proof_size(size, HELPERS),
        "squares_ms": _time(lambda: commitment(*mask_bounded(numbers, bound, seeds), HELPERS)),
    }


def _project(numbers: Ints, seed: bytes) -> list[float]:
    """Return the products of a vector with random rows of signs."""
    vector, width = numbers.astype(np.float32), -(-numbers.size // 8)
    stream, found = np.frombuffer(keystream(seed, PROJECTIONS * width), np.uint8).reshape(PROJECTIONS, width), []
    for start in range(0, PROJECTIONS, ROWS):
        signs = np.unpackbits(stream[start : start + ROWS], axis=1)[:, : numbers.size].astype(np.float32)
        found += (signs @ vector).tolist()
    return found


def _time(work: Callable[[], object]) -> float:
    """Return the median milliseconds of processor time."""
    times = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)
