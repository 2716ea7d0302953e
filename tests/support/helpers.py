"""Cards, rosters and terms of secure sums for tests."""

from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from common.secure.cards import HelperRoster, NodeCard, make_card
from common.secure.members import MemberList, simulated_key
from common.secure.terms import SumTerms

TERMS: dict[str, Any] = {
    "run": "toy",
    "round": 1,
    "channel": "train",
    "size": 6,
    "bits": 61,
    "bound": 1024,
    "clip": 1.0,
    "sign": "signed",
    "rho": 0.125,
    "noise": 4096,
    "most": 64,
    "min_sum": 2,
    "layout": (("update", 6),),
    "roster": "0" * 64,
    "members": "0" * 64,
}
"""Valid fields of terms."""

EXACT: dict[str, Any] = {"bits": 64, "noise": 0, "rho": 0.0, "clip": 0.0, "bound": 0}
"""Fields of terms without noise."""


def node_keys(number: int) -> list[ec.EllipticCurvePrivateKey]:
    return [ec.derive_private_key(2 + n, ec.SECP384R1()) for n in range(number)]


def exchange_key(number: int) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes([1 + number]) * 32)


@cache  # signatures are random
def card(number: int = 0, run: str = "toy", name: str = "") -> NodeCard:
    """Return the signed card of helper `number`: keys are equal in every call."""
    return make_card(name or f"helper-{number}", run, node_keys(number + 1)[number], exchange_key(number).public_key())


def roster(number: int = 2, run: str = "toy") -> HelperRoster:
    return HelperRoster(tuple(card(n, run) for n in range(number)))


@cache
def members(*names: str, run: str = "toy") -> MemberList:
    """Return a list of clients with simulated keys."""
    return MemberList(tuple(simulated_key(name).member(name, run) for name in names))


@cache
def cards_of(*names: str, run: str = "toy") -> list[str]:
    """Return the cards of `members`."""
    return [simulated_key(name).card(name, run) for name in names]


def terms(**changed: Any) -> SumTerms:
    return SumTerms(**{**TERMS, "keys": tuple(roster().to_json()), **changed})
