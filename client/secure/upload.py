"""Uploads to secure sums: masked integers, with the masks' seeds sealed to the helpers."""

import base64
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from safetensors.numpy import load, save

from client.enrolment import EnrolledRun, NamesRun
from client.privacy.budget import Reservation, finite_or_zeros
from client.privacy.release import Releaser
from client.privacy.transforms import Released, Update, UpdateChain, Work, ZerosOnFailure, update_of
from client.secure.members import Party
from client.secure.terms import AcceptedRoster, ExpectedSum
from client.state import Store
from client.tasks.names import check_names, names_part
from client.training.local_round import zero_reply
from common.arrays import Array, Arrays, Floats, Ints, add_prefix, group
from common.config.run import RunConfig
from common.errors import RefusedError
from common.privacy.accounts import AccountedMechanism
from common.privacy.vectors import clip, from_vector, to_vector
from common.secure.cards import HelperRoster
from common.secure.layout import WEIGHT, SumLayout, to_clusters, update_clip
from common.secure.masking import CHECKS, MASKED, SEED, box_context, check_sums, expand, seal
from common.secure.noise import DiscreteGaussian
from common.secure.norms import commitment, mask_bounded
from common.secure.quantisation import LARGEST, decode, exact_integers, quantise
from common.secure.terms import REPEATS, SumTerms, digest
from common.tasks.names import NameSum
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import summed_metrics
from common.text import count, printable
from common.wire.messages import LOCAL, EvaluateReply, EvaluateRequest, NamesReply, NamesRequest, TrainRequest

log = logging.getLogger("fedloom.client")


@dataclass(frozen=True)
class SumPart:
    """Part of one client in a secure sum whose terms it accepted.

    The template has the names, shapes and dtypes of the vector. The cluster is the one that the client chose; it stays on this
    machine.
    """

    party: Party
    terms: SumTerms
    template: Arrays
    cluster: int = 0

    @property
    def trust(self) -> str:
        """Trust of the release, for the ledger."""
        return f"helpers:{self.terms.roster[:16]}"

    @property
    def roster(self) -> HelperRoster:
        """Helpers with their keys of now."""
        return HelperRoster.of(self.terms)

    def blocks(self, config: RunConfig, steps: int) -> "Blocks":
        """Return the select step of an update, as in `JoinedSum`."""
        return Blocks(config, steps, self.cluster, self.terms.clip)

    def privatize(
        self,
        reservation: Reservation | None,
        generator: Callable[[], np.random.Generator],
        internal: AccountedMechanism | None = None,
    ) -> "ForSum":
        """Return the step that masks, as in `JoinedSum`."""
        return ForSum(self, reservation, generator, internal)

    def mask(self, numbers: Ints) -> bytes:
        """Return masked numbers, sealed seeds, a proof and the terms' digest, for the replay cache.

        The numbers without masks are beside them, for the client's own state.
        """
        terms, seeds = self.terms, [secrets.token_bytes(SEED) for _ in self.roster.cards]
        exact, bound_by = numbers.view(MASKED), b""
        if terms.has_noise:
            masked, content = mask_bounded(numbers, terms.bound, seeds)
            proof: Array = np.frombuffer(content, np.uint8)
            bound_by = base64.b64decode(commitment(masked, content, len(seeds)))
        else:
            masked, proof = exact.copy(), np.empty((len(seeds), CHECKS), MASKED)
            for n, seed in enumerate(seeds):  # one mask in memory
                mask = expand(seed, terms.size + CHECKS, terms.bits)
                masked += mask[: terms.size]
                proof[n] = check_sums(self.party.check, mask)
                del mask
        boxes = [self._seal(seed, bound_by, n) for n, seed in enumerate(seeds)]
        about = {"sealed": "\n".join(boxes), "terms": terms.digest}
        texts = {name: np.frombuffer(text.encode(), np.uint8) for name, text in about.items()}
        return save({"sum": masked, "proof": proof, "own": exact, **texts})

    def read(self, content: bytes) -> Released:
        """Return the upload in the bytes of `mask`.

        Raises:
            RefusedError: The bytes are of other terms.
        """
        arrays = load(content)
        if arrays["terms"].tobytes().decode() != self.terms.digest:
            raise RefusedError("this round was already answered on other terms, which stand")
        client_part = SumLayout.of(self.template).arrays(decode(arrays["own"], self.terms), self.template)
        sealed = arrays["sealed"].tobytes().decode().split()
        masked = {name: arrays[name] for name in ("sum", "proof")}
        return Released({}, masked=masked, sealed=sealed, client_part=client_part)

    def _seal(self, seed: bytes, bound_by: bytes, number: int) -> str:
        terms, card = self.terms, self.roster.cards[number]
        about = (terms.run, terms.round, terms.channel, self.party.client, card.name, terms.digest, terms.roster)
        context = box_context(*about)
        return seal(seed + self.party.key.sign(terms.run, context, seed + bound_by), card.raw_key, context)


@dataclass(frozen=True)
class ForSum:
    """Privatize step under trust `helpers`: clip, round, mask; charge the ledger for the helpers' noise.

    Without a reservation there is no noise, and uploads are always fresh. `internal` is the mechanism whose noise the work
    itself draws, unit `record`; helpers then add none. The generator rounds.
    """

    part: SumPart
    reservation: Reservation | None
    generator: Callable[[], np.random.Generator]
    internal: AccountedMechanism | None = None

    def __call__(self, work: Work) -> Released:
        """Compute the values, charge the ledger, then mask them; noise inside the work is charged before it.

        Raises:
            RefusedError, LedgerError: See `Reservation.commit`.
            WireError: The values have another layout than the sum.
        """
        terms, layout = self.part.terms, SumLayout.of(self.part.template)

        def exact() -> bytes:
            vector = layout.vector(work().arrays)
            if not terms.has_residues and (beyond := int((np.abs(vector) > LARGEST).sum())):
                text = "run %s: %s beyond ±%d in a secure sum; clipped to it"
                log.warning(text, printable(terms.run), count(beyond, "number"), LARGEST)
            numbers = exact_integers(vector, terms)
            del vector  # statistics of many items are large
            return self.part.mask(numbers)

        if self.reservation is None:
            return self.part.read(exact())
        if self.internal is not None:
            return self.part.read(self.reservation.commit(self.internal, exact))
        vector = layout.vector(work().arrays)
        mechanism = DiscreteGaussian(terms.bound, terms.sign, terms.noise)
        content = self.reservation.commit(mechanism, lambda: self._draw(vector), trust=self.part.trust)
        return self.part.read(content)

    def _draw(self, vector: Floats) -> bytes:
        terms = self.part.terms
        return self.part.mask(quantise(vector, terms.clip, terms.bound, terms.sign, self.generator()))


@dataclass(frozen=True)
class Blocks:
    """Select step: the arrays that a client adds to the sum of a round.

    `update/` holds w·Δ_k·τ/τ_k, `gradient/` w·s_k, `absolute/` the magnitudes of `update/`, and `weight` w, where the method
    needs them. In runs without noise that weigh by records w = min(records, most-examples)/most-examples, else 1. In methods
    with clusters, these are blocks of the client's own cluster (`common.secure.layout`). `steps` are τ_k, and `clip` is the
    clip norm C of the sum; 0 without noise.
    """

    config: RunConfig
    steps: int
    cluster: int = 0
    clip: float = 0.0

    def __call__(self, work: Work) -> Work:
        """Return work that computes the blocks."""
        return lambda: self.of(work())

    def of(self, update: Update) -> Update:
        """Return the blocks of an exact update."""
        weight = self._weight(update.examples)
        arrays = {name: weight * a for name, a in update.arrays.items()}
        arrays |= {name: a / self._share for name, a in arrays.items() if name.startswith("update/")}
        if self.config.capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", {name: np.abs(a) for name, a in group("update", arrays).items()})
        arrays |= {WEIGHT: np.array([weight])} if self._is_weighted else {}
        clusters = self.config.capabilities.clusters
        arrays = self._clipped(arrays)
        return Update(to_clusters(arrays, self.cluster, clusters, self.clip) if clusters else arrays)

    def restore(self, released: Released) -> Released:
        """Encode step: turn the client's own part back into an update and a gradient, in runs with noise."""
        update = f"update/{self.cluster}" if self.config.capabilities.clusters else "update"
        exact: Arrays = {name: a * self._share for name, a in group(update, released.client_part).items()}
        gradient = add_prefix("gradient", group("gradient", released.client_part))
        return replace(released, client_part={**add_prefix("update", exact), **gradient})

    def _clipped(self, arrays: Arrays) -> Arrays:
        """Scale an update to norm C, less the room for a cluster's mark, in runs with noise that need it."""
        clusters, normalise = self.config.capabilities.clusters, self.config.privacy.normalise
        if not self.clip or not (clusters or normalise):
            return arrays
        largest = update_clip(self.clip) if clusters else self.clip
        return from_vector(clip(finite_or_zeros(to_vector(arrays)), largest, 2, normalise), arrays)

    @property
    def _share(self) -> float:
        """τ_k/τ; 1 where means are not per step."""
        return self.steps / self.config.method_options.steps(LOCAL) if self.config.capabilities.per_step else 1.0

    @property
    def _is_weighted(self) -> bool:
        return self.config.privacy.unit == "none" and self.config.method_options.weighting == "examples"

    def _weight(self, examples: int) -> float:
        most = self.config.secure_sums.most_examples
        return self.config.method_options.weight(examples, most) / most if self._is_weighted else 1.0


TRAIN = "train"
"""Channel of the sum of updates."""


def _roster(run: EnrolledRun | NamesRun) -> HelperRoster:
    """Return the helpers of a run's sums.

    Raises:
        RefusedError: The client has not accepted any.
    """
    if not isinstance(run.helpers, AcceptedRoster):
        raise RefusedError("this run announces secure sums, and its helpers were not accepted")
    return run.helpers.roster


def join_training(
    party: Party, run: EnrolledRun, min_sum: int, store: Store, request: TrainRequest, steps: int
) -> SumPart:
    """Return the part of a client in a round's sum of updates.

    Raises:
        WireError: The terms are malformed.
        RefusedError: They are not those of the round's sum, or the request is for a reply of this client alone.
    """
    if request.phase != LOCAL:
        raise RefusedError(f"this run announces secure sums, and a reply of phase '{request.phase}' is not part of one")
    zeros = zero_reply(run.config.method_options, run.learner, request, steps)
    privacy = run.config.privacy
    expected = ExpectedSum(
        run=run.run,
        round=request.round,
        channel=_channel(run, request),
        roster=_roster(run),
        min_sum=min_sum,
        template=Blocks(run.config, steps).of(update_of(zeros)).arrays,
        party=party,
        rho=request.cost if privacy.unit == "client" else 0.0,
        clip=privacy.clip * request.clip,
        sign=run.config.upload_sign if privacy.unit == "client" else "signed",
    )
    return SumPart(party, _accept(expected, request.terms, store), expected.template)


def _channel(run: EnrolledRun, request: TrainRequest) -> str:
    """Return the channel of the request's terms if it can be one of the run: of a group, or of a repeat."""
    groups, repeats = run.config.secure_sums.groups, REPEATS if run.config.capabilities.closed_form else ()
    sums = (TRAIN, *repeats)
    channels = tuple(f"{one}/{g}" for one in sums for g in range(groups)) if groups > 1 else sums
    channel = SumTerms.from_json(request.terms).channel if request.terms else TRAIN
    return channel if channel in channels else channels[0]  # the terms are then refused


def _accept(expected: ExpectedSum, text: str, store: Store) -> SumTerms:
    """Return the terms of a request; the first channel and the first helpers' keys of a round stand.

    Two sums of one round with equal other clients would show the client's own vector. A helper opens one, and after a new
    start it opens none of an earlier key.

    A repeat has fresh masks. Every sum needs all helpers. Under all attempts of a round, one helper has the same key, so it
    remembers: it closes an attempt that it has not opened, which then shows nothing, since its masks hide all numbers. One
    that it has opened, it opens again for the same clients alone. This holds if such a helper is honest.

    Raises:
        WireError: The terms are malformed.
        RefusedError: They are not those of this sum, or of another group, or of keys after those of the round; or no helper
            has had the same key since the first attempt.
    """
    terms = expected.accept(text)
    (whole, repeat), current = terms.attempt, HelperRoster.of(terms).keys
    kind, _, part = whole.partition("/")
    name, sealed = f"sum-{kind}{part if kind == 'names' else ''}", digest(current)
    number, channel, keys, *first = (store.read(terms.run, name).decode() or f"-1 {terms.channel} {sealed}").split(" ")
    witnesses = {*current}
    if int(number) == terms.round and repeat:
        witnesses, (before, earlier) = witnesses & {*first}, replace(terms, channel=channel).attempt
        if not witnesses:
            raise RefusedError(f"no helper remembers all sums of round {terms.round}; nothing was sent")
        channel, keys = (terms.channel, sealed) if before == whole and repeat > earlier else (channel, keys)
    if int(number) == terms.round and channel != terms.channel:
        raise RefusedError(
            f"this client's sum of round {terms.round} is {channel}, not {terms.channel}; nothing was sent"
        )
    if int(number) >= terms.round and keys != sealed:
        raise RefusedError(f"a helper has another key than in this client's sum of round {number}; nothing was sent")
    store.write(terms.run, name, " ".join([str(terms.round), terms.channel, sealed, *sorted(witnesses)]).encode())
    return terms


def _release(
    expected: ExpectedSum, terms: str, store: Store, releaser: Releaser, reserve: Callable[[], Reservation], work: Work
) -> tuple[Released, str]:
    """Return a client's part of an accepted sum, and the head of its ledger; empty without noise."""
    part = SumPart(expected.party, _accept(expected, terms, store), expected.template)
    reservation = reserve() if expected.rho else None
    select = (ZerosOnFailure(lambda: Update(expected.template)),) if reservation else ()
    released = UpdateChain(select, ForSum(part, reservation, releaser.generator))(work)
    return released, reservation.head if reservation else ""


def upload_names(party: Party, run: NamesRun, releaser: Releaser, store: Store, request: NamesRequest) -> NamesReply:
    """Return a client's masked part of a sum of names.

    Raises:
        WireError: The request or its terms are malformed.
        RefusedError: The policy or the run does not allow it, or the terms are not acceptable.
    """
    check_names(run, releaser)
    noise = run.config.name_noise
    sums = NameSum.of_request(run.run, request.frequent, noise)
    expected = ExpectedSum(run.run, 0, sums.channel, _roster(run), releaser.min_sum, sums.template, party)
    if noise and not sums.frequent:
        expected = replace(expected, rho=noise.rho, clip=noise.clip, sign="positive")
    reserve = partial(releaser.budget.reserve_in_sums, run.config, run.run, "names")

    def work() -> Update:
        return Update(sums.pack(names_part(run, sums)))

    released, _ = _release(expected, request.terms, store, releaser, reserve, work)
    return NamesReply({}, masked=released.masked, sealed=released.sealed)


METRICS_CHANNEL = "evaluate"
"""Channel of the sums of metrics.

Its numbers are those of evaluations, and 0 for the only one with noise.
"""


def upload_metrics(
    party: Party,
    run: EnrolledRun,
    releaser: Releaser,
    store: Store,
    request: EvaluateRequest,
    measure: Callable[[], EvaluateReply],
) -> EvaluateReply:
    """Return a client's masked metrics.

    Raises:
        WireError: The terms of the sum are malformed.
        RefusedError: The terms are not acceptable, the model is not final in a run with noise, or a limit is exceeded.
    """
    rho = run.config.metric_cost
    if run.helpers is None or (rho and not request.final):
        raise RefusedError("the run's configuration does not announce sums of metrics of this model")
    metrics = summed_metrics(TASKS[run.config.task], noised=rho > 0)
    expected = ExpectedSum(
        run=run.run,
        round=0 if rho else SumTerms.from_json(request.terms).round,
        channel=METRICS_CHANNEL,
        roster=_roster(run),
        min_sum=releaser.min_sum,
        template=metrics.template,
        party=party,
        rho=rho,
        clip=metrics.clip,
        sign="positive" if rho else "signed",
    )
    reserve = partial(releaser.budget.reserve_in_sums, run.config, run.run, "metrics")

    def values() -> Update:
        reply = measure()
        return Update(metrics.pack(reply.metrics, reply.weights, reply.paired))

    released, head = _release(expected, request.terms, store, releaser, reserve, values)
    return EvaluateReply(request.round, {}, {}, masked=released.masked, sealed=released.sealed, ledger=head)
