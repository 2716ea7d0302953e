"""Terms of secure sums that a client accepts, checked before anything is computed, and pinned helpers.

An owner pins the identities of helpers; a client accepts rosters that agree with the pins.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.owner.policy import SharingPolicy
from client.secure.members import Party
from common.arrays import Arrays
from common.errors import RefusedError, StateError
from common.files import write_atomically
from common.privacy.vectors import Sign
from common.secure.cards import HelperRoster
from common.secure.layout import SumLayout
from common.secure.quantisation import integer_clip, noise_scale
from common.secure.terms import SumTerms
from common.text import count, printable


@dataclass(frozen=True)
class ExpectedSum:
    """Sum that a client is ready to join.

    The template has names, shapes and dtypes of the client's own vector. `party` is the client among the members. `min_sum` is
    the owner's, `rho` the cost ρ of the request, 0 without noise, `clip` the clip norm C, with noise, and `sign` is `positive`
    if no number is negative.
    """

    run: str
    round: int
    channel: str
    roster: HelperRoster
    min_sum: int
    template: Arrays
    party: Party
    rho: float = 0.0
    clip: float = 0.0
    sign: Sign = "signed"

    def accept(self, text: str) -> SumTerms:
        """Return the terms of a request.

        Raises:
            WireError: The terms are malformed.
            RefusedError: There are no terms, or they are not those of this sum; names the field.
        """
        if not text:
            raise RefusedError("this run announces secure sums, and the request has no terms of one")
        terms = SumTerms.from_json(text)
        for field, holds in _CHECKS.items():
            if not holds(self, terms):
                raise RefusedError(
                    f"terms of the secure sum: {field} is not what this client requires; nothing was sent"
                )
        return terms


def _has_noise(expected: ExpectedSum, terms: SumTerms) -> bool:
    """Return True if the noise is that of the cost: none without a cost."""
    if not expected.rho:
        return not terms.has_noise
    return terms.noise >= noise_scale(expected.rho, integer_clip(terms.size), expected.sign)


def _has_members(expected: ExpectedSum, terms: SumTerms) -> bool:
    """Return True if the client was shown the members of enough owners, and is one by its own key."""
    party, members = expected.party, expected.party.members
    index = members.position(party.client)
    is_member = party.key.member(party.client, expected.run) in members.members[index : index + 1]
    enough = max(bisect_left(members.owners, expected.min_sum), index + 1)
    return is_member and terms.members in members.digests[enough:]


_CHECKS: dict[str, Callable[[ExpectedSum, SumTerms], bool]] = {
    "run": lambda expected, terms: terms.run == expected.run,
    "round": lambda expected, terms: terms.round == expected.round,
    "channel": lambda expected, terms: terms.channel == expected.channel,
    "roster": lambda expected, terms: terms.roster == expected.roster.digest,
    "keys": lambda expected, terms: HelperRoster.of(terms).digest == terms.roster,
    "members": _has_members,
    "layout": lambda expected, terms: terms.layout == SumLayout.of(expected.template).blocks,
    "rho": lambda expected, terms: terms.rho == expected.rho,
    "noise": _has_noise,
    "sign": lambda expected, terms: terms.sign == expected.sign,
    "bound": lambda expected, terms: not terms.has_noise or terms.bound == integer_clip(terms.size),
    "clip": lambda expected, terms: not terms.has_noise or terms.clip == expected.clip,
    "min_sum": lambda expected, terms: terms.min_sum >= expected.min_sum,
}


@dataclass(frozen=True)
class AcceptedRoster:
    """Roster of a run and the part of it that the client's guarantee rests on."""

    roster: HelperRoster
    pinned: tuple[str, ...]
    """Names of the helpers whose identity is pinned, those of the first contact included."""
    first_use: tuple[str, ...] = ()
    """Names of the pinned helpers whose identity came from the server at first contact."""


class Pins:
    """Identities of helpers that one client relies on, by its owner's policy.

    Without a path, the identities of first contacts end with the process. `pinned` returns further keys that the owner has
    agreed to.
    """

    def __init__(
        self, policy: SharingPolicy, path: Path | None = None, pinned: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._policy, self._path, self._pinned = policy, path, pinned
        self._memory: dict[str, str] = {}

    def accept(
        self, cards: Sequence[str], run: str, agree: Callable[[Sequence[str]], None] = lambda keys: None
    ) -> AcceptedRoster:
        """Return the roster of an invitation if enough of its helpers are pinned.

        `agree` raises RefusedError for keys of helpers beyond the contract; nothing is pinned then.

        Raises:
            WireError: A card is malformed or of another run, or the roster is.
            RefusedError: A helper's key has changed, or too few helpers are pinned, or the contract names other helpers.
            StateError: The file of first contacts cannot be read or written.
        """
        roster = HelperRoster.read(cards, run)
        seen = self._read()
        for card in roster.cards:
            if card.fingerprint != {**seen, **self._policy.helpers}.get(card.name, card.fingerprint):
                raise RefusedError(f"helper '{card.name}' has another key than before")
        owners = {*self._policy.helpers.values(), *self._pinned()}
        others = {card.name: card.fingerprint for card in roster.cards if card.fingerprint not in owners}
        first_use = (
            others if self._policy.helpers_on_first_use else {n: f for n, f in others.items() if seen.get(n) == f}
        )
        pinned = tuple(card.name for card in roster.cards if card.name in first_use or card.name not in others)
        if len(pinned) < self._policy.min_helpers:
            raise RefusedError(
                f"{count(len(pinned), 'helper')} of this run are pinned, the policy requires {self._policy.min_helpers}"
                f" (min-helpers); ask for the fingerprints of {', '.join(printable(n, 80) for n in roster.names)}"
            )
        agree([card.fingerprint for card in roster.cards])
        if {**seen, **first_use} != seen:
            self._write({**seen, **first_use})
        return AcceptedRoster(roster, pinned, tuple(sorted(first_use)))

    def _read(self) -> dict[str, str]:
        if self._path is None:
            return self._memory
        try:
            content = json.loads(self._path.read_bytes())
            return {str(name): str(fingerprint) for name, fingerprint in content.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise StateError(
                f"{self._path} cannot be read ({error}); restore it, or move it away to pin helpers anew"
            ) from None

    def _write(self, seen: dict[str, str]) -> None:
        if self._path is None:
            self._memory = seen
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path, json.dumps(seen, indent=1, sort_keys=True).encode(), mode=0o600)
        except OSError as error:
            raise StateError(f"cannot write {self._path}: {error.strerror}; make it writable for this user") from None
