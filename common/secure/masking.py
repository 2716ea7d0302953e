"""Masks of secure sums and the sealed boxes of their seeds."""

import base64
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from common.errors import WireError
from common.secure.terms import canonical, read_base64

Unsigned = NDArray[np.unsignedinteger[Any]]

SEED = 32
"""Bytes of a seed σ."""

SIGNATURE = 64
"""Bytes of a member's signature of a seed."""

BOX = 32 + SEED + SIGNATURE + 16
"""Bytes of a box: public key e, encrypted seed and signature, tag."""

_INFO = b"fedloom/secure-sum/2 seal"
_NONCE = bytes(12)
"""Zero nonce: every key of AES-GCM is used once."""


MASKED = np.dtype("<u8")
"""Dtype of masked numbers, which add up mod 2⁶⁴."""

BLOCK = 1 << 16
"""Numbers whose keystream is made at once."""

CHECKS = 4
"""Checks of one helper's sum of masks without noise: a client's numbers, and blinds beside the sum."""


def keystream(key: bytes, size: int) -> bytes:
    """Return the first bytes of the AES-256-CTR keystream of a key, from counter block zero."""
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def expand(seed: bytes, size: int, bits: int) -> Unsigned:
    """Return the mask G(σ): numbers of k bits from the keystream of the seed.

    Raises:
        WireError: The seed does not have 32 bytes.
    """
    if len(seed) != SEED:
        raise WireError(f"a seed has {SEED} bytes, not {len(seed)}")
    stream, mask = _stream(seed), np.empty(size, MASKED)
    for block in _blocks(mask):
        block[:] = _numbers(stream, block) >> np.uint64(64 - bits)
    return mask


def total_mask(seeds: Iterable[bytes], size: int, bits: int) -> Unsigned:
    """Return Σ G(σ) mod 2⁶⁴ over seeds.

    Raises:
        WireError: A seed does not have 32 bytes.
    """
    total: Unsigned = np.zeros(size, MASKED)
    for seed in seeds:
        total += expand(seed, size, bits)
    return total


def check_sums(key: bytes, mask: Unsigned) -> Unsigned:
    """Return ⟨w, m⟩ + blind mod 2⁶⁴ for each of `CHECKS` rows w; the mask's last numbers are blinds.

    Clients and server have the key of w, and no helper has it. So a helper that changes its sum of masks by e passes with the
    probability of ⟨w, e⟩ = 0: 2⁻²⁵⁶ if e has an odd number, and 16 times more for each factor of two in all its numbers.
    """
    size, stream, sums = mask.size - CHECKS, _stream(key), mask[-CHECKS:].copy()
    for k in range(CHECKS):
        for block in _blocks(mask[:size]):
            sums[k : k + 1] += _numbers(stream, block) @ block
    return sums


def _stream(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


def _blocks(numbers: Unsigned) -> Iterator[Unsigned]:
    """Yield views of the numbers, so that their keystream takes little memory."""
    return (numbers[start : start + BLOCK] for start in range(0, numbers.size, BLOCK))


def _numbers(stream: CipherContext, block: Unsigned) -> Unsigned:
    """Return the next numbers of a keystream, as many as the block has."""
    return np.frombuffer(stream.update(bytes(block.nbytes)), MASKED)


def box_context(
    run: str, round_: int, channel: str, client: str, helper: str, terms_digest: str, roster_digest: str
) -> bytes:
    """Return the associated data of a box; a box opens in this place alone."""
    about = {"run": run, "round": round_, "channel": channel, "client": client, "helper": helper}
    return canonical({**about, "terms": terms_digest, "roster": roster_digest})


def seal(signed: bytes, helper_key: bytes, context: bytes) -> str:
    """Encrypt a seed and its signature to a helper's X25519 key; base64 of 144 bytes.

    Raises:
        WireError: The key is no X25519 key, or of low order.
    """
    ephemeral = X25519PrivateKey.generate()
    public = ephemeral.public_key().public_bytes_raw()
    return base64.b64encode(
        public + _cipher(ephemeral, public, helper_key, helper_key).encrypt(_NONCE, signed, context)
    ).decode()


def unseal(secret: X25519PrivateKey, box: str, context: bytes) -> bytes:
    """Decrypt the seed of a box, and the signature behind it.

    Raises:
        WireError: The box is malformed, sealed to another key or of another context.
    """
    raw = read_base64(box, "a sealed box")
    if len(raw) != BOX:
        raise WireError(f"a sealed box has {BOX} bytes, not {len(raw)}")
    ephemeral, helper_key = raw[:32], secret.public_key().public_bytes_raw()
    try:
        return _cipher(secret, ephemeral, helper_key, ephemeral).decrypt(_NONCE, raw[32:], context)
    except InvalidTag as error:
        raise WireError("a sealed box does not open: it is of another key or other terms") from error


def _cipher(secret: X25519PrivateKey, ephemeral: bytes, helper: bytes, peer: bytes) -> AESGCM:
    """Return AES-256-GCM under HKDF-SHA256 of the shared point; salt is e‖helper key.

    Raises:
        WireError: The peer's key is no X25519 key, or of low order.
    """
    try:
        shared = secret.exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError as error:
        raise WireError("an X25519 key is malformed or of low order") from error
    return AESGCM(HKDF(SHA256(), 32, ephemeral + helper, _INFO).derive(shared))
