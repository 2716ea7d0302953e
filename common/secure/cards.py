"""Cards of helpers and of members: the identity of a node and its key of one run, signed. Pure."""

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal, get_args

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from common import node_names as node_keys
from common.errors import WireError
from common.secure.terms import SumTerms, canonical, digest, read_base64, read_object
from common.text import printable

FEWEST, MOST = 2, 5
"""Numbers of helpers in a roster."""

_PURPOSE = b"fedloom/node-card/2\n"
"""Start of the signed bytes: a signature for this purpose serves no other."""

_SIGNATURE = ec.ECDSA(SHA384())

Serves = Literal["only", "also", "trains"]

_ANY_KEY = X25519PrivateKey.from_private_bytes(bytes(32))
"""Key whose exchange fails with public keys of low order, as every exchange does."""


@dataclass(frozen=True)
class NodeCard:
    """Statement of a node that it takes part in the sums of a run under this key."""

    name: str
    """Public name of the node."""
    run: str
    """Name of the run."""
    identity: str
    """Public P-384 node key: DER, base64."""
    key: str
    """Public key of this run: raw, base64; X25519 of a helper until it starts again, Ed25519 of a member."""
    serves: Serves
    """`only` a helper without data; `also` a helper that is a client of the run, too; `trains` a member."""
    signature: str = ""
    """ECDSA signature of the other fields by `identity`, base64."""

    def to_json(self) -> str:
        """Return the card as canonical JSON."""
        return canonical(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "NodeCard":
        """Parse the text of `to_json` and check its signature.

        Raises:
            WireError: The text is malformed, a key is of another kind, or the signature is invalid.
        """
        content = read_object(text, "node card")
        if {field.name for field in fields(cls)} != content.keys() or not all(
            isinstance(value, str) for value in content.values()
        ):
            raise WireError("node card: fields are missing, unknown or not of type str")
        card = cls(**content)
        if card.to_json() != text:
            raise WireError("node card: not canonical JSON")
        card.verify()
        return card

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the node's identity, `SHA256:…`."""
        return node_keys.fingerprint(self._node_key())

    @cached_property
    def raw_key(self) -> bytes:
        """Raw key of this run."""
        raw = read_base64(self.key, "node card: key")
        if len(raw) != 32:
            raise WireError(f"node card: key has {len(raw)} bytes instead of 32")
        return raw

    def sign(self, node_key: ec.EllipticCurvePrivateKey) -> "NodeCard":
        """Return the card with the signature of its identity's private key."""
        signature = node_key.sign(self._signed_bytes(), _SIGNATURE)
        return replace(self, signature=_encode(signature))

    def verify(self) -> None:
        """Check fields, keys and signature.

        Raises:
            WireError: A field is invalid, or the signature is not that of `identity`.
        """
        if not self.name or printable(self.name, 80) != self.name or self.serves not in get_args(Serves):
            raise WireError("node card: name or serves is invalid")
        raw = self.raw_key
        try:
            if self.serves != "trains":
                _ANY_KEY.exchange(X25519PublicKey.from_public_bytes(raw))
        except ValueError:
            raise WireError(f"node card: the key of '{self.name}' is of low order") from None
        try:
            self._node_key().verify(
                read_base64(self.signature, "node card: signature"), self._signed_bytes(), _SIGNATURE
            )
        except InvalidSignature:
            raise WireError(f"node card: the signature of '{self.name}' is invalid") from None

    def _signed_bytes(self) -> bytes:
        content = asdict(self)
        del content["signature"]
        return _PURPOSE + canonical(content)

    def _node_key(self) -> ec.EllipticCurvePublicKey:
        try:
            key = load_der_public_key(read_base64(self.identity, "node card: identity"))
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
            raise WireError("node card: identity is not a P-384 key")
        return key


@dataclass(frozen=True)
class HelperRoster:
    """Cards of a run's helpers, in the order of their names; a roster stays when a helper's key changes."""

    cards: tuple[NodeCard, ...]

    @classmethod
    def read(cls, texts: Sequence[str], run: str) -> "HelperRoster":
        """Parse cards and check them.

        Raises:
            WireError: A card is malformed, not signed by its identity, repeated, out of order, or of another run.
        """
        return _read_roster(tuple(texts), run)

    @classmethod
    def of(cls, terms: SumTerms) -> "HelperRoster":
        """Return the helpers of a sum with the keys to which its masks are sealed.

        Raises:
            WireError: See `read`.
        """
        return _read_roster(terms.keys, terms.run)

    @property
    def keys(self) -> list[str]:
        """Keys of the helpers, in base64."""
        return [card.key for card in self.cards]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the cards without keys and signatures in canonical JSON, in hexadecimal."""
        return digest([[card.name, card.run, card.identity, card.serves] for card in self.cards])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the helpers, ascending."""
        return tuple(card.name for card in self.cards)

    def to_json(self) -> list[str]:
        """Return the cards as canonical JSON."""
        return [card.to_json() for card in self.cards]


@lru_cache(maxsize=16)  # all clients of a process are sent the same cards
def _read_roster(texts: tuple[str, ...], run: str) -> HelperRoster:
    if not FEWEST <= len(texts) <= MOST:
        raise WireError(f"roster: {len(texts)} helpers; a run has {FEWEST} to {MOST}")
    cards = tuple(NodeCard.from_json(text) for text in texts)
    if any(card.run != run or card.serves == "trains" for card in cards):
        raise WireError("roster: a card is of another run, or no helper's")
    if any(left.name >= right.name for left, right in pairwise(cards)):
        raise WireError("roster: names are repeated or not in ascending order")
    if len({card.raw_key for card in cards}) < len(cards) or len({card.fingerprint for card in cards}) < len(cards):
        raise WireError("roster: two helpers have the same key")
    return HelperRoster(cards)


def make_card(
    name: str,
    run: str,
    node_key: ec.EllipticCurvePrivateKey,
    key: X25519PublicKey | Ed25519PublicKey,
    serves: Serves = "only",
) -> NodeCard:
    """Return a node's signed card of a run; `key` is its key of this run alone."""
    identity = node_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    raw = key.public_bytes_raw()
    return NodeCard(name, run, _encode(identity), _encode(raw), serves).sign(node_key)


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()
