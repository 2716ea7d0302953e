"""Service of a helper: one noised sum of masks for each round and channel, for one set of clients."""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from common.arrays import Array
from common.errors import RefusedError, WireError
from common.node_names import owner_of
from common.secure.cards import HelperRoster, NodeCard, make_card
from common.secure.masking import CHECKS, SEED, box_context, total_mask, unseal
from common.secure.members import SumMember, read_lines
from common.secure.noise import Stream, discrete_gaussian
from common.secure.norms import read_commitment, share
from common.secure.terms import LONGEST_RUN, MOST_NUMBERS, SumTerms, digest
from common.text import count, printable
from common.wire.messages import HelperReply, HelperRequest, OpenReply, OpenRequest, PrepareReply, PrepareRequest

MOST_RUNS = 16
"""Maximum number of runs with seeds in memory."""

MOST_KEYS = 1_000
"""Maximum number of runs with keys in memory."""

HOUR, DAY = 3_600.0, 86_400.0  # seconds

MOST_ROUNDS = 2
"""Maximum number of rounds of a run and a channel in memory."""

MOST_SUMS = MOST_RUNS * MOST_ROUNDS * 4
"""Maximum number of sums in memory."""


@dataclass
class RunKeys:
    """Key and card of a helper in one run, and the newest sums that it opened.

    They are in memory alone. A helper that starts again has another key, and opens nothing that was sealed to this one.
    """

    secret: X25519PrivateKey
    card: NodeCard
    time: float
    """Seconds of the last message."""
    sums: dict[str, tuple[tuple[int, int], Sequence[str], str, bytes]] = field(default_factory=dict)
    """Channel -> round and repeat, clients, digest of the set and key of the noise of the newest sum."""


class HelperState:
    """Keys and opened sums of one helper; the clock has monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs: dict[str, RunKeys] = {}
        self._clock, self._lock = clock, Lock()

    def keys(self, run: str, make: Callable[[], tuple[X25519PrivateKey, NodeCard]]) -> RunKeys:
        """Return the keys of a run, new ones if it has none; the oldest of more than `MOST_KEYS` are deleted."""
        with self._lock:
            found = self._runs.pop(run, None) or RunKeys(*make(), self._clock())
            self._runs[run], found.time = found, self._clock()
            if len(self._runs) > MOST_KEYS:
                del self._runs[next(iter(self._runs))]
            return found

    def find_keys(self, terms: SumTerms) -> RunKeys:
        """Return the keys to which the masks of a sum are sealed.

        Raises:
            RefusedError: There are none, or the terms name other ones.
        """
        with self._lock:
            if found := self._runs.get(terms.run):
                found.time = self._clock()
        if found is None or found.card.key not in HelperRoster.of(terms).keys:
            about = (
                f"round {terms.round} of run '{printable(terms.run, 80)}' is of a key that this helper does not have"
            )
            raise RefusedError(f"{about}: it started again, or the run is over")
        return found

    def enter(self, terms: SumTerms, clients: Sequence[str], members: str, draw: Callable[[], bytes]) -> bytes:
        """Note the sum of a round and a channel; return the key of its noise.

        `members` is the digest of the set: names, boxes and terms. `draw` gives a fresh key. A repeat closes earlier attempts.
        After an opened one it is of the same clients: their statistics, and thus both sums, are the same.

        Raises:
            RefusedError: The sum was opened for another set, or it is closed.
        """
        sums, (channel, repeat) = self.find_keys(terms).sums, terms.attempt
        number = terms.round, repeat
        with self._lock:
            newest, opened, before, key = sums.get(channel, ((-1, 0), (), "", b""))
            if newest > number:
                raise RefusedError(f"the sum of round {terms.round} is closed")
            is_same = before == members if newest == number else opened == clients
            if newest[0] == terms.round and not is_same:
                raise RefusedError(f"the sum of round {terms.round} was opened for another set")
            if newest < number:
                key = draw()
                sums[channel] = number, clients, members, key
            return key

    def end(self, run: str) -> None:
        """Delete the keys of a run that is over."""
        with self._lock:
            self._runs.pop(run, None)

    def forget(self, days: float) -> list[str]:
        """Delete the keys of runs without a message for so many days; return their names."""
        with self._lock:
            last = self._clock() - days * DAY
            old = [run for run, keys in self._runs.items() if keys.time < last]
            for run in old:
                del self._runs[run]
            return old


@dataclass(frozen=True)
class PreparedSum:
    """Opened boxes of one sum."""

    digest: str
    """Digest of the terms."""
    seeds: dict[str, bytes]
    """Client -> seed of its mask."""
    boxes: dict[str, str]
    """Client -> sealed box of that seed."""


class PreparedSums:
    """Prepared sums; the oldest rounds of a channel, the oldest runs and the oldest sums are dropped."""

    def __init__(self) -> None:
        self._sums: OrderedDict[tuple[str, int, str], PreparedSum] = OrderedDict()
        self._lock = Lock()

    def find(self, terms: SumTerms) -> PreparedSum | None:
        """Return the newest prepared sum of a round and a channel."""
        with self._lock:
            return self._sums.get(_key(terms))

    def keep(self, terms: SumTerms, prepared: PreparedSum) -> None:
        """Store a prepared sum, together with what was prepared on equal terms before."""
        sum_key = _key(terms)
        with self._lock:
            before = self._sums.pop(sum_key, prepared)
            if before.digest == prepared.digest and len(before.seeds.keys() | prepared.seeds.keys()) <= terms.most:
                seeds, boxes = before.seeds | prepared.seeds, before.boxes | prepared.boxes
                prepared = PreparedSum(prepared.digest, seeds, boxes)
            self._sums[sum_key] = prepared
            rounds = [key for key in self._sums if key[::2] == sum_key[::2]]
            runs = list(OrderedDict.fromkeys(run for run, _, _ in reversed(self._sums)))
            for key in [key for key in self._sums if key in rounds[:-MOST_ROUNDS] or key[0] in runs[MOST_RUNS:]]:
                del self._sums[key]
            while len(self._sums) > MOST_SUMS:
                self._sums.popitem(last=False)


def _key(terms: SumTerms) -> tuple[str, int, str]:
    return terms.run, terms.round, terms.channel


LONGEST_NAME = 200
"""Maximum number of characters of a client's name."""

sums = logging.getLogger("fedloom.helper.sums")
"""Log with one line a sum."""


class HelperService:
    """Helper in any number of runs.

    Owners identify it by the node key. `serves` is `also` if the node is a client, too. `noise_key` gives the keys of noise,
    `run_key` the key of a run; reproducible in studies and simulations only.
    """

    def __init__(
        self,
        name: str,
        node_key: EllipticCurvePrivateKey,
        *,
        serves: Literal["only", "also"] = "only",
        most_numbers: int = MOST_NUMBERS,
        noise_key: Callable[[SumTerms], bytes] = lambda terms: secrets.token_bytes(32),
        run_key: Callable[[str], X25519PrivateKey] = lambda run: X25519PrivateKey.generate(),
    ) -> None:
        self.name, self.state = name, HelperState()
        self._node_key, self._serves, self._most_numbers, self._noise_key = node_key, serves, most_numbers, noise_key
        self._prepared, self._run_key = PreparedSums(), run_key

    def card(self, request: HelperRequest) -> HelperReply:
        """Return the card of a run, with a key of this run and this start alone; end the run if it is over.

        Raises:
            WireError: The run's name is invalid.
        """
        run = request.run
        if not 0 < len(run) <= LONGEST_RUN or not run.isprintable():
            raise WireError("HelperRequest.run: invalid name of a run")
        if request.over:
            self.state.end(run)
            return HelperReply("")
        return HelperReply(self.state.keys(run, lambda: self._make_keys(run)).card.to_json())

    def prepare(self, request: PrepareRequest) -> PrepareReply:
        """Open every box and keep the seeds in memory.

        Raises:
            WireError: Terms or names are malformed.
            RefusedError: This helper does not serve the run, or had another key.
        """
        terms = self._terms(request.terms)
        names = _check_names(request.clients, terms, self.name)
        boxes = dict(zip(names, _pair_boxes(request, terms), strict=True))
        secret = self.state.find_keys(terms).secret
        members = read_lines(request.members)
        if members.digest != terms.members:
            raise RefusedError(f"round {terms.round}: the members are not those of its terms")
        keys = {one.name: one for one in members.members}
        opened = {name: self._open_box(secret, terms, keys[name], *boxes[name]) for name in names if name in keys}
        seeds = {name: seed for name, (seed, _) in opened.items() if seed}  # of members alone
        self._prepared.keep(terms, PreparedSum(terms.digest, seeds, {name: box for name, (box, _) in boxes.items()}))
        bad, shares = [name for name in names if name not in seeds], dict[str, Array]()
        if terms.has_noise and seeds:
            content = b"".join(share(seeds[name], terms.size, opened[name][1]) for name in seeds)
            shares["shares"] = np.frombuffer(content, np.uint8).reshape(len(seeds), -1)
        return PrepareReply(terms.round, terms.channel, bad, shares)

    def open(self, request: OpenRequest) -> OpenReply:
        """Return the sum of the masks of a set of clients, minus noise; the set is noted first.

        Raises:
            WireError: Terms or names are malformed.
            RefusedError: The set is too small or not prepared, another set was opened, or the sum is closed.
        """
        terms = self._terms(request.terms)
        names = _check_names(request.clients, terms, self.name)
        self.state.find_keys(terms)
        prepared = self._prepared.find(terms)
        if prepared is None:
            return OpenReply(terms.round, terms.channel, missing=True)
        if prepared.digest != terms.digest:
            raise RefusedError(f"round {terms.round} was prepared on other terms")
        if not set(names) <= prepared.seeds.keys():
            raise RefusedError(f"round {terms.round}: a client of the set was not prepared")
        if (owners := len({*map(owner_of, names)})) < terms.min_sum:
            raise RefusedError(f"clients of {count(owners, 'owner')} in the sum; its terms require {terms.min_sum}")
        members = digest([terms.digest, [[name, prepared.boxes[name]] for name in names]])
        key = self.state.enter(terms, names, members, lambda: self._noise_key(terms))
        opened = _noised_sum(terms, [prepared.seeds[name] for name in names], key)
        clients, run = count(len(names), "client"), printable(terms.run, 80)
        sums.info("%s · round %d · %s · %s · noise %d", run, terms.round, terms.channel, clients, terms.noise)
        return OpenReply(terms.round, terms.channel, missing=False, opened={"sum": opened})

    def _make_keys(self, run: str) -> tuple[X25519PrivateKey, NodeCard]:
        key = self._run_key(run)
        return key, make_card(self.name, run, self._node_key, key.public_key(), self._serves)

    def _terms(self, text: str) -> SumTerms:
        terms = SumTerms.from_json(text)
        if terms.size > self._most_numbers:
            raise RefusedError(
                f"{count(terms.size, 'number')} in a vector; this helper's limit is {self._most_numbers:,}"
            )
        return terms

    def _open_box(
        self, secret: X25519PrivateKey, terms: SumTerms, member: SumMember, box: str, bound_by: str
    ) -> tuple[bytes, bytes]:
        """Return seed and commitment of a box; empty if it does not open, or is not signed."""
        about = (terms.run, terms.round, terms.channel, member.name, self.name, terms.digest, terms.roster)
        context = box_context(*about)
        try:
            signed = unseal(secret, box, context)
            committed = read_commitment(bound_by, signed[:SEED]) if terms.has_noise else b""
        except WireError:
            return b"", b""
        is_signed = member.has_signed(context, signed[:SEED] + committed, signed[SEED:])
        return (signed[:SEED], committed) if is_signed else (b"", b"")


def _noised_sum(terms: SumTerms, seeds: Sequence[bytes], key: bytes) -> Array:
    """Return r = Σ G(σ) − z mod 2⁶⁴; z is discrete Gaussian noise from the stream of `key`.

    Without noise, the sums of the blinds of checks follow.
    """
    total: Array = total_mask(seeds, terms.size + (0 if terms.has_noise else CHECKS), terms.bits)
    if terms.has_noise:
        total -= discrete_gaussian(terms.noise, terms.size, Stream(key)).astype(total.dtype)
    return total


def _pair_boxes(request: PrepareRequest, terms: SumTerms) -> list[tuple[str, str]]:
    """Return each client's box and the commitment of its upload, which is empty without noise.

    Raises:
        WireError: The boxes or commitments are of another number.
    """
    commitments = request.commitments if terms.has_noise else [""] * len(request.clients)
    if not len(request.sealed) == len(commitments) == len(request.clients):
        numbers = f"{len(request.sealed)} boxes and {len(commitments)} commitments"
        raise WireError(f"PrepareRequest: {numbers} of {count(len(request.clients), 'client')}")
    return list(zip(request.sealed, commitments, strict=True))


def _check_names(names: list[str], terms: SumTerms, helper: str) -> list[str]:
    """Return names of clients that are distinct, ascending, at most `most`, and not the helper's.

    Raises:
        WireError: The names are something else.
    """
    if not names or len(names) > terms.most:
        raise WireError(f"{count(len(names), 'client')} in a set; its terms allow {terms.most}")
    if any(not 0 < len(name) <= LONGEST_NAME for name in names):
        raise WireError("clients: a name is empty or too long")
    if any(left >= right for left, right in pairwise(names)):
        raise WireError("clients: names are repeated or not in ascending order")
    if helper in names:
        raise WireError(f"clients: '{helper}' is the name of the helper")
    return names
