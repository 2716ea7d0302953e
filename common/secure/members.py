"""Members of a run's secure sums: keys that sign uploads, and their list, which only grows. Pure.

A helper opens an upload only if the key of a member has signed it. The digest of the list is in the terms of each sum, and
every client has the list. So a server that invents the other clients of a sum must show their keys to the owners.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from common.errors import RefusedError, WireError
from common.node_names import fingerprint, owner_of, simulated_node_key
from common.secure.cards import NodeCard, make_card
from common.secure.masking import SIGNATURE
from common.secure.terms import read_base64
from common.text import printable

_KEY, _UPLOAD, _LIST = b"fedloom/member-key/1\n", b"fedloom/upload/1\n", b"fedloom/members/1\n"
"""Starts of derived and signed bytes: those of one purpose serve no other."""


class MemberKey:
    """Key of one client, by which helpers know it; the key of a run follows from the client's node key."""

    def __init__(self, node_key: ec.EllipticCurvePrivateKey) -> None:
        self._node_key = node_key

    def card(self, name: str, run: str) -> str:
        """Return the client's card of a run, signed by its node key, as canonical JSON."""
        return make_card(name, run, self._node_key, _run_key(self._node_key, run).public_key(), "trains").to_json()

    def member(self, name: str, run: str) -> "SumMember":
        """Return what the client's card states."""
        key = _run_key(self._node_key, run).public_key().public_bytes_raw()
        return SumMember(name, fingerprint(self._node_key.public_key()), base64.b64encode(key).decode())

    def sign(self, run: str, context: bytes, seed: bytes) -> bytes:
        """Return the signature of a seed and its upload's commitment, sealed in a context, of 64 bytes."""
        return _run_key(self._node_key, run).sign(_UPLOAD + context + seed)


@lru_cache(maxsize=4096)
def _run_key(node_key: ec.EllipticCurvePrivateKey, run: str) -> Ed25519PrivateKey:
    secret = node_key.private_numbers().private_value.to_bytes(48, "big")
    return Ed25519PrivateKey.from_private_bytes(HKDF(SHA256(), 32, None, _KEY + run.encode()).derive(secret))


def simulated_key(name: str) -> MemberKey:
    """Return a key that follows from the client's name, for simulations; it protects nothing."""
    return MemberKey(simulated_node_key(name))


@dataclass(frozen=True)
class SumMember:
    """Client whose uploads helpers open."""

    name: str
    identity: str
    """Fingerprint of its node key, `SHA256:…`."""
    key: str
    """Ed25519 key of the run: raw, base64."""

    @property
    def line(self) -> str:
        """Name, identity and key with blanks between."""
        return f"{self.name} {self.identity} {self.key}"

    @classmethod
    def of(cls, line: str) -> Self:
        """Return the member of a `line`.

        Raises:
            WireError: The text is no such line.
        """
        words = line.split(" ")
        if len(words) != 3 or not all(words) or len(line) > 500:
            raise WireError("members: a line does not have a name, an identity and a key")
        return cls(*words)

    def has_signed(self, context: bytes, seed: bytes, signature: bytes) -> bool:
        """Return True if the signature is this member's, for the seed in this context."""
        try:
            key = Ed25519PublicKey.from_public_bytes(read_base64(self.key, "members: key"))
            key.verify(signature, _UPLOAD + context + seed)
        except (InvalidSignature, ValueError, WireError):
            return False
        return len(signature) == SIGNATURE


@dataclass(frozen=True)
class MemberList:
    """Members in the order in which they joined; names and keys occur once."""

    members: tuple[SumMember, ...] = ()

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """Digest of the list with the first 0, 1, … members; each covers those before it."""
        start = hashlib.sha256(_LIST).hexdigest()
        lines = (member.line for member in self.members)
        chain = accumulate(
            lines, lambda before, line: hashlib.sha256(f"{before} {line}".encode()).hexdigest(), initial=start
        )
        return tuple(chain)

    @property
    def digest(self) -> str:
        """Digest of the whole list."""
        return self.digests[-1]

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Number of owners of the first 0, 1, … members."""
        firsts = {owner_of(member.name): None for member in self.members}
        new = (firsts.pop(owner_of(member.name), 1) is None for member in self.members)
        return tuple(accumulate(new, initial=0))

    def position(self, name: str) -> int:
        """Return the place of a member in the list; its length for one that is not in it."""
        return self._places.get(name, len(self.members))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {member.name: index for index, member in enumerate(self.members)}

    def at(self, digest: str) -> "MemberList":
        """Return the list as it was when it had a digest.

        Raises:
            RefusedError: It never had.
        """
        if digest not in self.digests:
            raise RefusedError("the sum's members are not those that are known here")
        return MemberList(self.members[: self.digests.index(digest)])

    def grow(self, newcomers: Iterable[SumMember]) -> "MemberList":
        """Return the list with newcomers at its end; those that are in it already change nothing.

        Raises:
            RefusedError: A name has another key than before, or a key another name.
        """
        members = {member.name: member for member in self.members}
        keys = {key: member.name for member in self.members for key in (member.identity, member.key)}
        for one in newcomers:
            if members.get(one.name, one) != one or any(
                keys.get(key, one.name) != one.name for key in (one.identity, one.key)
            ):
                raise RefusedError(
                    f"member '{printable(one.name, 80)}' has another key than before, or the key of another one"
                )
            members[one.name] = one
            keys |= {one.identity: one.name, one.key: one.name}
        return MemberList(tuple(members.values()))


def read_members(cards: Sequence[str], run: str) -> tuple[SumMember, ...]:
    """Return the members of signed cards.

    Raises:
        WireError: A card is malformed, not signed by its identity, a helper's, or of another run.
    """
    return _read_members(tuple(cards), run)


@lru_cache(maxsize=8)  # all clients of a process are shown the same cards
def _read_members(cards: tuple[str, ...], run: str) -> tuple[SumMember, ...]:
    found = [NodeCard.from_json(text) for text in cards]
    if wrong := next((card.name for card in found if card.run != run or card.serves != "trains"), ""):
        raise WireError(f"members: the card of '{wrong}' is of another run, or a helper's")
    return tuple(SumMember(card.name, card.fingerprint, card.key) for card in found)


def read_lines(lines: Sequence[str]) -> MemberList:
    """Return the list of `SumMember.line` texts.

    Raises:
        WireError: A line is malformed.
        RefusedError: A name or a key occurs twice.
    """
    found = MemberList().grow(SumMember.of(line) for line in lines)
    if len(found.members) != len(lines):
        raise RefusedError("members: a line occurs twice")
    return found
