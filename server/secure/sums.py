"""Secure sums that helpers open: groups and clusters of clients, and the opening of each sum."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from common.arrays import Array, Arrays, Floats, add_prefix, group
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError, RefusedError, WireError
from common.node_names import owner_of
from common.privacy.vectors import Sign, from_vector, to_vector
from common.secure.cards import HelperRoster
from common.secure.layout import CLUSTER, ROUNDED, WEIGHT, SumLayout, mark, update_clip
from common.secure.masking import BOX, CHECKS, MASKED, Unsigned, check_sums
from common.secure.members import MemberList
from common.secure.norms import commitment, holds, proof_size, share_size
from common.secure.quantisation import LARGEST, centre, decode, fixed_scale, integer_clip, noise_scale
from common.secure.terms import EXACT_BITS, MOST_CLIENTS, NOISED_BITS, SumTerms
from common.text import count
from common.wire.messages import OPEN, PREPARE, OpenReply, OpenRequest, Payload, PrepareReply, PrepareRequest, SumReply
from server.aggregation.replies import Load
from server.aggregation.robust import bounded
from server.record.events import Sum
from server.secure.helpers import HelperExchange, ReplyT
from server.secure.members import Membership
from server.secure.store import FixedSum, SumStore, opened_size

BOX_TEXT = (BOX + 2) // 3 * 4
"""Number of characters of a sealed box."""

BESIDE = 100_000
"""Bytes of an upload beside numbers and boxes: names of fields, and room for later ones."""


@dataclass(frozen=True)
class Upload:
    """Masked vector of a client, with its seeds sealed to each helper of the roster."""

    load: Load
    """Return the vector as array `sum`, from memory or from disk."""
    boxes: tuple[str, ...]
    """Boxes in the order of the roster; with noise, the commitment of the upload is behind them."""
    proof: Array
    """Proof of the vector's norm; without noise, checks of each helper's masks."""
    steps: int = 0
    """Number of local steps; 0 in sums of other values than updates."""


@dataclass(frozen=True)
class Release:
    """Privacy of one client's vector in a sum; the defaults are a sum without noise.

    Args:
        rho: Cost μ²/2 of Gaussian DP; 0 without noise.
        clip: Clip norm C.
        sign: `positive` if no number is below zero.
    """

    rho: float = 0.0
    clip: float = 0.0
    sign: Sign = "signed"


@dataclass(frozen=True)
class Total:
    """Opened sum.

    Args:
        vector: Sum in the clients' units.
        clients: Names of the clients in it, ascending.
        steps: Client -> number of its local steps.
        longest: Largest norm that the mean over the clients can have; infinite without noise.
        spread: Standard deviation of the noise of a number; 0 without noise.
        rejected: Client -> reason why its upload is not in the sum.
    """

    vector: Floats
    clients: list[str]
    steps: Mapping[str, int]
    longest: float = math.inf
    spread: float = 0.0
    rejected: Mapping[str, str] = field(default_factory=dict)


STREAM = 0x6720
"""Mark of the random stream of groups, beside those of other choices of a round."""


def assign(clients: Iterable[str], groups: int, seed: int, number: int, earlier: Mapping[str, int]) -> dict[str, int]:
    """Return client -> group for a round, in groups of nearly equal size.

    Args:
        clients: Names of the clients.
        groups: Number G of groups.
        seed: Seed of the run.
        number: Number of the round.
        earlier: Groups of clients that were asked in this round before; they stay.
    """
    found = {name: group for name, group in earlier.items() if group < groups}
    new = sorted(set(clients) - found.keys())
    np.random.default_rng([seed, number, STREAM]).shuffle(new)
    sizes = np.bincount([*found.values()], minlength=groups)
    for name in new:
        found[name] = int(sizes.argmin())
        sizes[found[name]] += 1
    return found


TOGETHER = 1_000
"""Maximum number of clients in a request to a helper, which answers each with a share."""

REPEATS = 5
"""Number of times that a helper may forget its boxes while one sum is opened."""

DEVIATIONS = 9
"""Standard deviations within which all noise lies; a larger sum is not of its clients."""


class SumLostError(RefusedError):
    """Sum that will never be opened; the next round has another number."""


class ImpossibleSumError(SumLostError):
    """Sum that no data of its clients give, where the helpers' sums are checked."""


class TooFewUploadsError(QuorumError):
    """Fewer usable uploads than a sum needs."""


class Opening:
    """Opening of the sum of one round and channel."""

    def __init__(
        self,
        terms: SumTerms,
        roster: HelperRoster,
        members: MemberList,
        check: bytes,
        exchange: HelperExchange,
        store: SumStore,
    ) -> None:
        self.terms, self._roster, self._exchange, self._store = terms, roster, exchange, store
        self._members, self._check = [member.line for member in members.members], check

    def close(self, uploads: Mapping[str, Upload], failed: Mapping[str, str]) -> tuple[FixedSum, dict[str, str]]:
        """Return the sum over clients whose boxes all helpers open, and client -> reason for the others.

        From its return on the set is final. `failed` names clients without a usable upload, for the error.

        Raises:
            QuorumError: Fewer clients than a sum needs, or a helper does not answer.
            SumLostError: A helper refuses.
        """
        self._require(uploads, failed)
        rejected, chosen = dict[str, str](), dict[str, Upload]()
        total: Unsigned = np.zeros(self.terms.size, MASKED)
        names = sorted(uploads)
        for start in range(0, len(names), TOGETHER):
            asked = {name: uploads[name] for name in names[start : start + TOGETHER]}
            bad, shares = self._prepare({name: upload.boxes for name, upload in asked.items()})
            rejected |= bad
            for name in sorted(asked.keys() - bad.keys()):
                masked, proof = asked[name].load()["sum"], asked[name].proof
                if not self.terms.has_noise or holds(masked, proof.tobytes(), self.terms.bound, shares[name]):
                    chosen[name] = asked[name]
                    total += masked
                else:
                    rejected[name] = "its proof fails: the vector is longer than the terms allow"
        self._require(chosen, {**failed, **rejected})
        boxes = {name: upload.boxes for name, upload in chosen.items()}
        steps = {name: upload.steps for name, upload in chosen.items() if upload.steps}
        proofs = [] if self.terms.has_noise else [upload.proof for upload in chosen.values()]
        fixed = FixedSum(self.terms, boxes, steps, total, np.sum(proofs, axis=0, dtype=MASKED))
        self._store.fix(fixed)
        return fixed, rejected

    def open(self, fixed: FixedSum) -> Unsigned:
        """Return the sum of the clients' integers and of the helpers' noise, mod 2ᵏ.

        Raises:
            QuorumError: A helper does not answer.
            SumLostError: A helper refuses, or the sum is not of its clients.
        """
        stored = self._store.answers(self.terms)
        answers, total = stored | self._ask(fixed, stored), fixed.total.copy()
        self._check_masks(fixed, answers)
        for answer in answers.values():
            total -= answer[: self.terms.size]
        numbers = centre(total)
        if max(int(numbers.max()), -int(numbers.min())) > self._largest(len(fixed.boxes)):
            lost = SumLostError if self.terms.has_noise else ImpossibleSumError  # a helper's noise may hide its own lie
            raise lost(f"round {self.terms.round}: the sum is beyond what its clients can make together")
        return total

    def _prepare(self, boxes: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, str], dict[str, list[bytes]]]:
        """Let helpers open boxes; return client -> reason if one stays shut, client -> shares of its check."""
        names, text = sorted(boxes), self.terms.to_json()
        commitments = [boxes[name][-1] for name in names] if self.terms.has_noise else []
        requests = {
            helper: PrepareRequest(text, names, [boxes[name][k] for name in names], self._members, commitments)
            for k, helper in enumerate(self._roster.names)
        }
        rejected, shares = dict[str, str](), dict[str, list[bytes]]()
        for helper, reply in self._answers(requests, PREPARE, PrepareReply).items():
            self._check_place(helper, reply.round, reply.channel)
            rejected |= {name: f"helper '{helper}' cannot open its box" for name in reply.bad if name in boxes}
            for name, one in self._read_shares(helper, [n for n in names if n not in reply.bad], reply).items():
                shares.setdefault(name, []).append(one)
        return rejected, shares

    def _read_shares(self, helper: str, names: Sequence[str], reply: PrepareReply) -> dict[str, bytes]:
        """Return client -> a helper's share in the check of its norm; none without noise."""
        if not self.terms.has_noise or not names:
            return {}
        content = reply.shares.get("shares")
        if content is None or content.dtype != np.uint8 or content.shape != (len(names), share_size(self.terms.size)):
            raise SumLostError(f"round {self.terms.round}: helper '{helper}' sent shares of another size")
        return {name: row.tobytes() for name, row in zip(names, content, strict=True)}

    def _ask(self, fixed: FixedSum, stored: Mapping[int, Unsigned]) -> dict[int, Unsigned]:
        """Return the answers of the helpers that have none yet, and store them."""
        places = {name: k for k, name in enumerate(self._roster.names) if k not in stored}
        request = OpenRequest(self.terms.to_json(), fixed.clients)
        answers: dict[int, Unsigned] = {}
        for _ in range(REPEATS):
            waiting = {name: request for name, k in places.items() if k not in answers}
            if not waiting:
                return answers
            replies = self._answers(waiting, OPEN, OpenReply)
            for name, reply in replies.items():
                if not reply.missing:
                    answers[places[name]] = self._accept(name, reply)
            self._store.write_answers(self.terms, {**stored, **answers})
            if any(reply.missing for reply in replies.values()) and self._prepare_again(fixed):
                raise SumLostError(f"round {self.terms.round}: a helper cannot open the boxes any more")
        if len(answers) < len(places):
            raise SumLostError(f"round {self.terms.round}: a helper forgets the boxes it has opened")
        return answers

    def _prepare_again(self, fixed: FixedSum) -> bool:
        """Return True if a box of a final set does not open any more."""
        names = fixed.clients
        together = [names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER)]
        return any(self._prepare({name: fixed.boxes[name] for name in part})[0] for part in together)

    def _check_masks(self, fixed: FixedSum, answers: Mapping[int, Unsigned]) -> None:
        """Compare each helper's sum with the checks of the clients, without noise.

        Raises:
            SumLostError: A sum of masks is not that of the clients; names the helper.
        """
        for k, answer in () if self.terms.has_noise else sorted(answers.items()):
            if (check_sums(self._check, answer) != fixed.checks[k]).any():
                helper = self._roster.names[k]
                raise SumLostError(
                    f"round {self.terms.round}: the sum of helper '{helper}' is not that of the clients' masks"
                )

    def _accept(self, helper: str, reply: OpenReply) -> Unsigned:
        self._check_place(helper, reply.round, reply.channel)
        numbers = reply.opened.get("sum")
        if numbers is None or numbers.dtype != MASKED or numbers.shape != (opened_size(self.terms),):
            raise SumLostError(f"round {self.terms.round}: helper '{helper}' sent numbers of another size")
        return numbers

    def _check_place(self, helper: str, round_: int, channel: str) -> None:
        if (round_, channel) != (self.terms.round, self.terms.channel):
            raise SumLostError(f"round {self.terms.round}: helper '{helper}' answers for round {round_}, {channel}")

    def _answers(self, requests: Mapping[str, Payload], kind: str, reply: type[ReplyT]) -> dict[str, ReplyT]:
        try:
            return self._exchange.ask(requests, kind, reply)
        except RefusedError as error:
            raise SumLostError(f"round {self.terms.round}: {error}") from None

    def _largest(self, clients: int) -> int:
        """Return the largest magnitude of a number in a sum of so many clients."""
        if self.terms.has_residues:
            return 1 << (self.terms.bits - 1)
        if not self.terms.has_noise:
            return int(clients * LARGEST * fixed_scale(self.terms.most))
        return clients * self.terms.bound + DEVIATIONS * len(self._roster.cards) * self.terms.noise

    def _require(self, usable: Iterable[str], rejected: Mapping[str, str]) -> None:
        if (owners := len({*map(owner_of, usable)})) < self.terms.min_sum:
            reasons = "".join(f"; {name}: {reason}" for name, reason in sorted(rejected.items()))
            found = f"usable uploads of {count(owners, 'owner')}, {self.terms.min_sum} needed for a sum"
            raise TooFewUploadsError(f"round {self.terms.round}: {found}{reasons}")


NORM_SLACK = 1.1
"""Factor on the expected norm of the noise, in the bound on a mean."""

MOST_BY_DEFAULT = 64
"""Smallest `most` of terms; a few clients more or less then leave the terms of a round as they were."""


class HelperSums:
    """Sums that helpers open, with noise of each helper."""

    def __init__(
        self,
        config: RunConfig,
        roster: HelperRoster,
        membership: Membership,
        exchange: HelperExchange,
        store: SumStore,
        on_sum: Callable[[Sum], None] = lambda sum_: None,
    ) -> None:
        self._config, self._roster, self._exchange, self._membership = config, roster, exchange, membership
        self.store, self._on_sum = store, on_sum
        self.is_renewed = False
        """True if clients may have sealed masks to earlier keys of the helpers: the round is lost."""

    def renew(self, number: int, *channels: str) -> None:
        """Ask the helpers for the keys that they have now, before the terms of a round.

        Raises:
            QuorumError: A helper does not answer, or has another identity.
        """
        self._roster = self._exchange.renew(self._roster)
        earlier = [self.store.announced(number, channel)[0] for channel in channels]
        self.is_renewed = any(one and HelperRoster.of(one).keys != self._roster.keys for one in earlier)

    def terms(self, number: int, channel: str, template: Arrays, most: int, release: Release) -> SumTerms:
        """Return the terms of a sum over at most so many clients; those that were announced stand.

        The members are shown to the clients before.

        Raises:
            ConfigError: No sum of that many clients and numbers is possible.
        """
        layout = SumLayout.of(template)
        has_noise, minimum = release.rho > 0, self._config.secure_sums.min_sum
        bound = integer_clip(layout.size) if has_noise else 0
        noise = self._noise(release, bound, layout.size) if has_noise else 0
        terms = SumTerms(
            run=self._config.run_id,
            round=number,
            channel=channel,
            size=layout.size,
            bits=NOISED_BITS if has_noise else EXACT_BITS,
            bound=bound,
            clip=release.clip if has_noise else 0.0,
            sign=release.sign,
            rho=release.rho,
            noise=noise,
            most=min(max(1 << (most - 1).bit_length(), minimum, MOST_BY_DEFAULT), MOST_CLIENTS),
            min_sum=minimum,
            layout=layout.blocks,
            roster=self._roster.digest,
            keys=tuple(self._roster.to_json()),
            members=self._membership.introduce().digest,
        )
        announced, _ = self.store.announced(number, channel)
        same = announced and replace(announced, most=terms.most, members=terms.members, keys=terms.keys)
        return announced if announced and same == terms and self._is_paid(terms) else terms

    def admit(self, terms: SumTerms, clients: Sequence[str]) -> list[str]:
        """Return the clients that are asked, at most as many as the terms allow; earlier ones come first."""
        if not self._is_paid(terms):
            self.store.announce(terms, [])
            return sorted(clients)
        announced, earlier = self.store.announced(terms.round, terms.channel)
        earlier = earlier if announced == terms else []
        admitted = sorted(clients, key=lambda name: (name not in earlier, name))[: terms.most]
        self.store.announce(terms, sorted({*earlier, *admitted}))
        return sorted(admitted)

    def _is_paid(self, terms: SumTerms) -> bool:
        """Return True if clients pay for the sum, so that its terms stand."""
        return terms.has_noise or self._config.privacy.unit != "none"

    def assign(self, number: int, clients: Sequence[str]) -> dict[str, int]:
        """Return client -> group for a round; who was asked before stays in its group."""
        groups = self._config.secure_sums.groups
        if groups <= 1:
            return dict.fromkeys(clients, 0)
        drawn = 0 if self._config.capabilities.closed_form else number  # its sums of one client stay in one group
        found = assign(clients, groups, self._config.seed, drawn, self.store.groups(number))
        self.store.write_groups(number, found)
        return found

    def pending(self, number: int, channel: str) -> FixedSum | None:
        """Return the sum whose set of clients was final when the server stopped."""
        found = self.store.find(number, channel)
        return found if found and found.terms.roster == self._roster.digest else None

    def limit(self, terms: SumTerms) -> int:
        """Return the largest size of an upload in bytes."""
        helpers = len(self._roster.cards)
        return terms.size * MASKED.itemsize + self._proof_shape(terms)[0] + helpers * 2 * BOX_TEXT + BESIDE

    def upload(self, reply: SumReply, terms: SumTerms) -> Upload:
        """Return the upload of a reply.

        Raises:
            WireError: The numbers are missing, of another dtype or size, or the boxes are of another number or size.
        """
        helpers = len(self._roster.cards)
        if reply.masked.keys() != {"sum", "proof"}:
            raise WireError("reply has no masked numbers with a proof")
        numbers, proof = reply.masked["sum"], reply.masked["proof"]
        if numbers.dtype != MASKED or numbers.shape != (terms.size,):
            found = f"{numbers.dtype}{list(numbers.shape)}"
            raise WireError(f"masked numbers are {found}, expected uint64[{terms.size}]")
        if proof.shape != self._proof_shape(terms) or proof.dtype != (np.uint8 if terms.has_noise else MASKED):
            raise WireError(f"the proof is {proof.dtype}{list(proof.shape)}, expected {list(self._proof_shape(terms))}")
        if len(reply.sealed) != helpers or any(not isinstance(b, str) or len(b) != BOX_TEXT for b in reply.sealed):
            raise WireError(f"reply has no box of {BOX_TEXT} characters for each of {helpers} helpers")
        masked, bound_by = {"sum": numbers}, list[str]()
        if terms.has_noise:
            bound_by.append(commitment(numbers, proof.tobytes(), helpers))
        return Upload(lambda: masked, (*reply.sealed, *bound_by), proof)

    def _proof_shape(self, terms: SumTerms) -> tuple[int, ...]:
        helpers = len(self._roster.cards)
        return (proof_size(terms.size, helpers),) if terms.has_noise else (helpers, CHECKS)

    def total(self, terms: SumTerms, uploads: Mapping[str, Upload], failed: Mapping[str, str]) -> Total:
        """Return the sum over the uploads, or over those of the pending sum; `failed` is for the error.

        Raises:
            QuorumError: Too few clients, or a helper does not answer.
            SumLostError: The sum will never be opened.
        """
        start, rejected = time.monotonic(), dict[str, str]()
        self._exchange.exchanges.clear()
        fixed = self.pending(terms.round, terms.channel)
        if self.is_renewed:
            self.is_renewed = False
            raise self._lose(
                terms, {}, start, SumLostError(f"round {terms.round}: a helper was replaced or started again")
            )
        terms_of_it = fixed.terms if fixed else terms
        try:
            members = self._membership.members.at(terms_of_it.members)
            opening = Opening(terms_of_it, self._roster, members, self._membership.check, self._exchange, self.store)
            if fixed is None:
                fixed, rejected = opening.close(uploads, failed)
            vector = decode(opening.open(fixed), fixed.terms)
        except RefusedError as refused:
            lost = refused if isinstance(refused, SumLostError) else SumLostError(f"round {terms.round}: {refused}")
            raise self._lose(terms, rejected, start, lost) from None
        self._record(terms, len(fixed.boxes), rejected, start)
        return Total(vector, fixed.clients, fixed.steps, self._longest(fixed), self._spread(fixed), rejected)

    def _lose(self, terms: SumTerms, rejected: Mapping[str, str], start: float, lost: SumLostError) -> SumLostError:
        """Record a lost sum; its files stay until the round is done, so that a resumed round is lost, too."""
        self._record(terms, 0, rejected, start, str(lost))
        return lost

    def _noise(self, release: Release, bound: int, size: int) -> int:
        try:
            return noise_scale(release.rho, bound, release.sign)
        except RefusedError as error:
            raise ConfigError(f"a secure sum of {size:,} numbers is not possible: {error}") from None

    def _longest(self, fixed: FixedSum) -> float:
        terms, clients = fixed.terms, len(fixed.boxes)
        if not terms.has_noise:
            return math.inf
        return terms.clip + NORM_SLACK * self._spread(fixed) * math.sqrt(terms.size) / clients

    def _spread(self, fixed: FixedSum) -> float:
        """Return the standard deviation of the noise of all helpers on a number, in the clients' units."""
        terms = fixed.terms
        return terms.noise * math.sqrt(len(self._roster.cards)) * terms.clip / terms.bound if terms.has_noise else 0.0

    def _record(self, terms: SumTerms, clients: int, rejected: Mapping[str, str], start: float, lost: str = "") -> None:
        exchanges = self._exchange.exchanges
        self._on_sum(
            Sum(
                round=terms.round,
                channel=terms.channel,
                clients=clients,
                rejected=dict(rejected),
                seconds=time.monotonic() - start,
                bytes=sum(one.bytes_down + one.bytes_up for one in exchanges),
                lost=lost,
            )
        )


@dataclass(frozen=True)
class ClusterSums:
    """Sums of clusters.

    Args:
        sizes: Number of clients in each cluster, (K,); with noise an estimate, which may be below 0.
        weights: Sum of their weights, (K,).
        updates: Sum of the updates of each cluster.
        clip: Largest norm of an update; 0 without noise.
        spread: Standard deviation of the noise of a number.
    """

    sizes: Array
    weights: Array
    updates: list[Arrays]
    clip: float
    spread: float

    @classmethod
    def of(cls, total: Total, blocks: Arrays, clusters: int, clip: float) -> Self:
        """Return the sums of clusters in an opened sum.

        Args:
            total: Opened sum.
            blocks: Template of its vector.
            clusters: Number K of clusters.
            clip: Clip norm C; 0 without noise.
        """
        arrays = SumLayout.of(blocks).arrays(total.vector, blocks)
        sizes = np.rint(arrays[CLUSTER] / mark(clip))
        updates = [group(f"update/{j}", arrays) for j in range(clusters)]
        return cls(sizes, arrays.get(WEIGHT, sizes), updates, update_clip(clip), total.spread)

    def means(self, smallest: int) -> Arrays:
        """Return `update/j/name`, the mean update of each cluster j of `smallest` clients or more.

        With noise its norm is at most that of an update and of the noise on it.
        """
        means: Arrays = {}
        for j, update in enumerate(self.updates):
            if self.sizes[j] >= smallest and 0 < self.weights[j] <= self.sizes[j] * ROUNDED:
                mean = to_vector(update) / self.weights[j]
                noise = NORM_SLACK * self.spread * math.sqrt(mean.size) / self.weights[j]
                mean = bounded(mean, self.clip + noise if self.clip else math.inf)
                means |= add_prefix(f"update/{j}", from_vector(mean, update))
        return means
