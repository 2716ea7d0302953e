"""Masks cancel in sums, and a box opens for its helper, at its place alone."""

import base64
import itertools
import secrets

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from common.errors import WireError
from common.secure.masking import CHECKS, MASKED, box_context, check_sums, expand, seal, total_mask, unseal
from common.secure.noise import Stream, discrete_gaussian
from common.secure.quantisation import centre

CONTEXT = box_context("run", 3, "train", "anna", "council", "t" * 64, "r" * 64)
SIZE = 50


def _key(secret: X25519PrivateKey) -> bytes:
    return secret.public_key().public_bytes_raw()


def test_a_mask_is_the_keystream_of_its_seed() -> None:
    seed = secrets.token_bytes(32)
    keystream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update(bytes(40))
    words = [int.from_bytes(keystream[i : i + 8], "little") for i in range(0, 40, 8)]
    assert expand(seed, 5, 64).tolist() == words
    assert expand(seed, 5, 61).tolist() == [word >> 3 for word in words]


def test_seeds_that_differ_in_the_order_of_words_give_other_masks() -> None:
    seed = bytes(range(32))
    assert (expand(seed, 100, 61) != expand(seed[16:] + seed[:16], 100, 61)).mean() > 0.9


@pytest.mark.parametrize(("clients", "helpers", "bits"), [(2, 2, 61), (8, 3, 64), (64, 5, 61)])
def test_the_opened_sum_is_the_sum_of_integers_and_noises_for_every_dropout(
    clients: int, helpers: int, bits: int
) -> None:
    generator = np.random.default_rng(1)
    numbers = generator.integers(-1000, 1000, (clients, SIZE))
    seeds = [[secrets.token_bytes(32) for _ in range(helpers)] for _ in range(clients)]
    dtype = MASKED
    masked = [q.astype(dtype) + total_mask(of, SIZE, bits) for q, of in zip(numbers, seeds, strict=True)]
    noises = [discrete_gaussian(500, SIZE, Stream(secrets.token_bytes(32))) for _ in range(helpers)]
    for present in _subsets(clients, generator):
        opened = [
            total_mask((seeds[i][h] for i in present), SIZE, bits) - z.astype(dtype) for h, z in enumerate(noises)
        ]
        total = np.sum([masked[i] for i in present], axis=0, dtype=dtype)
        for answer in generator.permutation(np.array(opened)):
            total = total - answer
        np.testing.assert_array_equal(centre(total), numbers[present].sum(axis=0) + np.sum(noises, axis=0))


def _subsets(clients: int, generator: np.random.Generator) -> list[list[int]]:
    """Return all subsets of at least two of few clients, in any order; 20 random ones of many."""
    if clients <= 8:
        return [
            list(generator.permutation(chosen))
            for size in range(2, clients + 1)
            for chosen in itertools.combinations(range(clients), size)
        ]
    return [list(generator.permutation(clients)[: generator.integers(2, clients + 1)]) for _ in range(20)]


def test_a_box_opens_for_its_helper_and_has_144_bytes() -> None:
    secret, seed = X25519PrivateKey.generate(), secrets.token_bytes(96)
    box = seal(seed, _key(secret), CONTEXT)
    assert len(base64.b64decode(box)) == 144
    assert unseal(secret, box, CONTEXT) == seed
    assert box != seal(seed, _key(secret), CONTEXT)


@pytest.mark.parametrize("place", range(7))
def test_a_box_of_another_place_does_not_open(place: int) -> None:
    fields = ["run", 3, "train", "anna", "council", "t" * 64, "r" * 64]
    fields[place] = 4 if place == 1 else f"{fields[place]}x"
    secret = X25519PrivateKey.generate()
    box = seal(bytes(96), _key(secret), CONTEXT)
    with pytest.raises(WireError, match="does not open"):
        unseal(secret, box, box_context(*fields))  # type: ignore[arg-type]  # a list of mixed fields


def test_a_box_of_another_helper_or_with_a_changed_bit_does_not_open() -> None:
    secret, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    box = seal(bytes(96), _key(secret), CONTEXT)
    with pytest.raises(WireError, match="does not open"):
        unseal(other, box, CONTEXT)
    raw = bytearray(base64.b64decode(box))
    for position in (31, 40, 143):
        changed = bytearray(raw)
        changed[position] ^= 1
        with pytest.raises(WireError):
            unseal(secret, base64.b64encode(changed).decode(), CONTEXT)


@pytest.mark.parametrize("box", ["", "no base64!", base64.b64encode(bytes(143)).decode(), "ä" * 192])
def test_malformed_boxes_are_errors_of_the_wire(box: str) -> None:
    with pytest.raises(WireError, match="a sealed box"):
        unseal(X25519PrivateKey.generate(), box, CONTEXT)


def test_points_of_low_order_are_refused_on_both_sides() -> None:
    with pytest.raises(WireError, match="low order"):
        seal(bytes(32), bytes(32), CONTEXT)
    with pytest.raises(WireError, match="low order"):
        unseal(X25519PrivateKey.generate(), base64.b64encode(bytes(144)).decode(), CONTEXT)
    with pytest.raises(WireError, match="malformed"):
        seal(bytes(32), bytes(31), CONTEXT)


def test_a_changed_sum_of_masks_does_not_fit_the_clients_checks() -> None:
    key, seeds = secrets.token_bytes(32), [secrets.token_bytes(32) for _ in range(3)]
    masks = [expand(seed, SIZE + CHECKS, 64) for seed in seeds]
    checks = np.sum([check_sums(key, mask) for mask in masks], axis=0, dtype=MASKED)
    total = total_mask(seeds, SIZE + CHECKS, 64)
    assert (check_sums(key, total) == checks).all()
    for place, error in [(0, 1), (SIZE - 1, 1 << 40), (SIZE, 1)]:
        changed = total.copy()
        changed[place] += np.uint64(error)
        assert (check_sums(key, changed) != checks).any()


def test_a_seed_of_another_length_is_refused() -> None:
    with pytest.raises(WireError, match="32 bytes"):
        expand(bytes(16), 4, 32)
