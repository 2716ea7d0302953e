"""Flower's own masks: seeds of 32 bytes are folded to 32 bits, so that many have the same mask; tools/check.py forbids them."""

from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen


def test_two_seeds_with_two_words_exchanged_have_the_same_mask_in_flower() -> None:
    seed = bytes(range(32))
    exchanged = seed[4:8] + seed[:4] + seed[8:]
    [mask] = pseudo_rand_gen(seed, 1 << 32, [(100,)])
    [other] = pseudo_rand_gen(exchanged, 1 << 32, [(100,)])
    assert seed != exchanged
    assert (mask == other).all()
