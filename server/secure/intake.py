"""Masked uploads of a round, and the contribution in their secure sum."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import median

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, group, norm
from common.config.run import RunConfig
from common.config.secure_sums import FEWEST_GROUPS
from common.contribution import GRADIENT, MAGNITUDE, UPDATE, Contribution, Member
from common.errors import ConfigError, RefusedError, WireError
from common.secure.layout import ROUNDED, WEIGHT, SumLayout, to_clusters
from common.secure.terms import REPEATS, SumTerms
from common.tasks.registry import closed_form_of
from common.wire.messages import LOCAL, TrainReply
from server.aggregation.alignment import find_in_impossible
from server.aggregation.lengths import ReplyMemory
from server.aggregation.replies import Reply
from server.aggregation.robust import add_groups, bounded, median_of
from server.clients.enrolment import Enrolment
from server.round.checks import check_entries
from server.round.intake import Intake, Intaken, RepeatedError, split_messages, take_reply
from server.round.method import Method, RoundContext
from server.round.spool import Spool
from server.secure.store import FixedSum
from server.secure.sums import (
    ClusterSums,
    HelperSums,
    ImpossibleSumError,
    Release,
    SumLostError,
    TooFewUploadsError,
    Total,
    Upload,
)

CHANNEL = "train"
"""Channel of the sum of updates."""

BAD_BOXES = 3
"""Number of rounds with a box that does not open, after which a client is asked no more."""

BLOCKS = {"update": UPDATE, "absolute": MAGNITUDE, "gradient": GRADIENT}
"""Block of a client's vector -> kind of the contribution's sums."""


class SecureIntake(Intake):
    """Intake of masked uploads, of which the server learns one sum, or one sum of each group of clients."""

    def __init__(self, config: RunConfig, enrolment: Enrolment, method: Method, sums: HelperSums) -> None:
        self._enrolment, self._method, self._sums = enrolment, method, sums
        groups, repeats = config.secure_sums.groups, REPEATS if config.privacy.unit == "none" else ()
        self._attempts = [
            [f"{channel}/{g}" for g in range(groups)] if groups > 1 else [channel]
            for channel in (CHANNEL, *(repeats if config.capabilities.closed_form else ()))
        ]
        """Channels of each group's sum, and of their repeats."""
        self._attempt = (0, 0)  # round, and number of the attempt at its sums
        self._channels = self._attempts[0]
        self._combine = add_groups if config.capabilities.closed_form else median_of
        self.paying = []
        self.terms: list[SumTerms] = []
        """Terms of each group's sum."""
        self.spool: Spool | None = None
        """Store of uploads as they arrive."""
        self.at: RoundContext | None = None
        """Round whose uploads are taken."""
        self._groups: dict[str, int] = {}
        """Client of the round -> its group."""
        self._impossible = set[int]()
        """Groups of the round with an impossible sum."""
        self._bad_boxes = Counter[str]()
        self._notes: dict[str, float] = {}

    def is_pending(self, number: int) -> bool:
        """Return True if the sums of the round are still to be opened, or are lost."""
        found = (any(self._sums.store.announced(number, c)[0] for c in channels) for channels in self._attempts)
        announced = [k for k, is_announced in enumerate(found) if is_announced]
        self._attempt = number, max([self._attempt[1] if self._attempt[0] == number else 0, *announced])
        self._channels = self._attempts[self._attempt[1]]
        if all(self._fixed(number)):
            return True
        self._sums.renew(number, *self._channels)
        return self._sums.is_renewed

    def has_final(self, number: int) -> bool:
        """Return True if the clients of one of the round's sums are final, and it is still to be opened."""
        return any(self._fixed(number))

    def open(self, at: RoundContext, clients: Sequence[str]) -> dict[str, str]:
        """Fix the terms of the round's sums over these clients; return those that are asked, with their terms."""
        self.at, self.spool = at, self._sums.store.spool()
        fixed = self._fixed(at.number)
        if all(fixed) and not self._sums.is_renewed:
            final = [one for one in fixed if one is not None]
            self.terms, self.paying = [one.terms for one in final], [name for one in final for name in one.clients]
            self._groups = {name: g for g, one in enumerate(final) for name in one.clients}
            return {}
        privacy, most, blocks = at.config.privacy, len(self._enrolment.roster.clients), self.blocks(at)
        noised = Release(at.cost, at.clip * privacy.clip, at.config.upload_sign)
        release = noised if privacy.unit == "client" else Release()
        self._groups = self._sums.assign(at.number, clients)
        self.terms = [self._sums.terms(at.number, channel, blocks, most, release) for channel in self._channels]
        if self._sums.is_renewed:
            self.paying = []
            return {}
        members = [[name for name in clients if self._groups[name] == g] for g in range(len(self.terms))]
        admitted = (self._sums.admit(*one) for one in zip(self.terms, members, strict=True))
        self.paying = sorted(chain.from_iterable(admitted))
        asked = [name for name in self.paying if fixed[self._groups.get(name, 0)] is None]
        return {name: self._terms_of(name).to_json() for name in asked}

    def take(self, node: int, answer: Message) -> None:
        """Examine an upload as it arrives, and store its numbers."""
        if self.at is not None and self.terms and self.spool is not None:
            at, spool = self.at, self.spool
            take_reply(answer, lambda sent: self._store(at, sent, node, spool))

    def close(self, at: RoundContext, messages: Iterable[Message], phase: str = LOCAL) -> Intaken:
        """Open the round's sums; without all of them, the results are lost and the model stays.

        Raises:
            QuorumError: Too few uploads for the only sum, or a helper does not answer.
            RepeatedError: A sum of a closed form is lost, and another attempt is possible.
        """
        self.spool = None
        uploads, rejected = self.split(at, messages)
        total, reason = None, ""
        try:
            total = self._combine(self._open_groups(at, uploads, rejected))
        except SumLostError as lost:
            if self._attempt[1] + 1 < len(self._attempts):
                self._attempt = at.number, self._attempt[1] + 1
                raise RepeatedError(str(lost)) from None
            reason = str(lost)
            rejected |= dict.fromkeys(uploads, reason)
        memory, named = self._blame(at)
        spoilt = [name for name in rejected if self._bad_boxes[name] >= BAD_BOXES]
        memory, notes = memory.exclude([*spoilt, *named], at.rounds), self._notes
        return Intaken([], rejected | named, memory, total=total, lost=reason, notes=notes)

    def take_all(self, at: RoundContext, messages: Iterable[Message], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Refuse further phases: their replies would be single ones.

        Raises:
            ConfigError: Always; such methods are refused before a run.
        """
        raise ConfigError(f"{at.config.method} needs single replies; set privacy.trust=local")

    def add_up(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return the results as they are: the sum is all that the server knows."""
        return results

    def forget(self, number: int) -> None:
        """Remove the files of sums up to a round."""
        self._sums.store.clear(number, *chain.from_iterable(self._attempts), CHANNEL)

    def split(self, at: RoundContext, messages: Iterable[Message]) -> tuple[dict[str, Upload], dict[str, str]]:
        """Return client -> upload of usable replies, and client -> reason for the others."""
        return split_messages(messages, self._enrolment, partial(self._accept, at))

    def blocks(self, at: RoundContext) -> Arrays:
        """Return a template of the vector that each client sends."""
        capabilities, model = at.capabilities, at.state.model
        if capabilities.clusters:
            shared = self._method.template(at, group("0", model))
        else:
            shared = self._method.template(at, self._method.assignment.model_for(at, ""))
        arrays = add_prefix("update", shared)
        if capabilities.needs_gradient:
            arrays |= add_prefix("gradient", shared)
        if capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", shared)
        if at.cost == 0 and at.config.method_options.weighting == "examples":
            arrays[WEIGHT] = np.zeros(1)
        return to_clusters(arrays, 0, capabilities.clusters) if capabilities.clusters else arrays

    @property
    def largest(self) -> int:
        """Largest size of an upload in bytes."""
        return self._sums.limit(self.terms[0]) if self.terms else 0

    def _fixed(self, number: int) -> list[FixedSum | None]:
        return [self._sums.pending(number, channel) for channel in self._channels]

    def _terms_of(self, client: str) -> SumTerms:
        return self.terms[self._groups.get(client, 0)]

    def _store(self, at: RoundContext, sent: TrainReply, node: int, spool: Spool) -> Upload:
        upload = self._accept(at, sent, node, self._enrolment.roster.name(node))
        return replace(upload, load=spool.store(upload.load()))

    def _accept(self, at: RoundContext, reply: TrainReply, node: int, name: str) -> Upload:
        check_plain(at, reply)
        if at.cost:
            self._enrolment.ledgers.note(node, reply.ledger)
        return replace(self._sums.upload(reply, self._terms_of(name)), steps=reply.steps)

    def _blame(self, at: RoundContext) -> tuple[ReplyMemory, dict[str, str]]:
        """Return the memory after the round, and client -> reason if it was in too many impossible groups."""
        memory, named = at.state.reply_memory, dict[str, str]()
        if self._impossible:
            for name, g in self._groups.items():
                memory = memory.poll([name], [g in self._impossible])
            found = find_in_impossible(memory.votes)
            named = {name: reason for name, reason in found.items() if name in self._groups}
        return memory, named

    def _open_groups(
        self, at: RoundContext, uploads: dict[str, Upload], rejected: dict[str, str]
    ) -> list[Contribution]:
        """Return the contribution of each group; add clients that are in none to `rejected`.

        Raises:
            QuorumError: Too few uploads for the only sum, or a helper does not answer.
            SumLostError: The only sum or one that is repeated is lost, or fewer than `FEWEST_GROUPS` groups have one or an
                impossible one.
            RefusedError: The only sum has statistics that no data give.
        """
        is_renewed, found, groups = self._sums.is_renewed, dict[int, Contribution](), len(self.terms)
        self._impossible = set()
        for g, terms in enumerate(self.terms):
            members = {name: one for name, one in uploads.items() if self._groups.get(name, 0) == g}
            try:
                total = self._sums.total(terms, members, rejected)
                self._bad_boxes.update(total.rejected.keys())
                rejected |= total.rejected
                found[g] = self._contribution(at, total)
            except (RefusedError, TooFewUploadsError) as failure:
                is_repeated = isinstance(failure, SumLostError) and len(self._attempts) > 1
                if is_renewed or groups == 1 or is_repeated:
                    raise
                rejected |= dict.fromkeys(members, str(failure))
                self._impossible |= {g} if isinstance(failure, ImpossibleSumError) else set()
        enough = len(found) > len(self._impossible) and len(found) + len(self._impossible) >= min(FEWEST_GROUPS, groups)
        if not enough:
            raise SumLostError(f"round {at.number}: {len(found)} of {groups} groups have a sum, {FEWEST_GROUPS} needed")
        if not at.cost and not at.capabilities.closed_form:
            lengths, bound = {g: norm(one.mean_update()) for g, one in found.items()}, at.config.federation.norm_bound
            self._impossible |= {g for g, one in lengths.items() if one > bound * median([*lengths.values()]) > 0}
        return [*found.values()]

    def _contribution(self, at: RoundContext, total: Total) -> Contribution:
        """Return the contribution in an opened sum; its members have equal weights.

        Clients of a sum send (τ/τ_k)·Δ_k, with τ the configured number of local steps.
        """
        blocks, capabilities, secure = self.blocks(at), at.capabilities, at.config.secure_sums
        if capabilities.clusters:
            sums = ClusterSums.of(total, blocks, capabilities.clusters, self.terms[0].clip if self.terms else 0.0)
            means = sums.means(secure.min_sum)
            self._notes = {f"clients_{j}": float(size) for j, size in enumerate(sums.sizes)}
        else:
            means = _means(at, total, blocks)
        if capabilities.closed_form and at.config.privacy.unit == "none":
            _check_statistics(at, group("update", means), total.clients)
        configured = at.config.method_options.steps(LOCAL) if capabilities.per_step else 1
        result = Contribution(per_step=capabilities.per_step)
        members = [Member(name, steps=total.steps.get(name, 1)) for name in total.clients]
        for block, kind in BLOCKS.items():
            if arrays := group(block, means):
                result.dtypes |= {name: a.dtype for name, a in arrays.items()}
                factor = len(members) / (1 if kind == GRADIENT else configured)
                result.add_sums(kind, {name: a.astype(np.float64) * factor for name, a in arrays.items()})
        result.record(members)
        return result


def _check_statistics(at: RoundContext, means: Arrays, names: Sequence[str]) -> None:
    """Check that data can give these means of statistics of clients with any number of records.

    Raises:
        RefusedError: A number is out of its range; masks hide whose, and a repeat would have it again.
    """
    sums, entries = {n: a * float(len(names)) for n, a in means.items()}, closed_form_of(at.config.task).entries
    try:
        check_entries(sums, entries, 0, len(names))
    except WireError as error:
        raise RefusedError(f"round {at.number}: {error}; each sum is needed, so start a new run") from None


def check_plain(at: RoundContext, reply: TrainReply) -> None:
    """Check what a masked reply says in plaintext.

    Raises:
        WireError: The round or the number of steps is invalid, or the reply holds values beside its masked ones.
    """
    most = at.config.method_options.steps(LOCAL)
    if reply.round != at.number:
        raise WireError(f"reply is of round {reply.round}, not of round {at.number}")
    if not 1 <= reply.steps <= most:
        raise WireError(f"invalid reply: {reply.steps} local steps; at most {most} are possible")
    if reply.update or reply.gradient:
        raise WireError("reply holds plaintext values beside its masked ones")


def _means(at: RoundContext, total: Total, blocks: Arrays) -> Arrays:
    """Return the means over the clients of a sum, by block.

    Raises:
        SumLostError: The clients' weights sum to zero or less, or to more than one for each.
    """
    weight = most = float(len(total.clients))
    if WEIGHT in blocks:
        weight = float(SumLayout.of(blocks).arrays(total.vector, blocks)[WEIGHT].item())
        if not 0 < weight <= most * ROUNDED:
            raise ImpossibleSumError(f"round {at.number}: the weights of {most:.0f} clients sum to {weight:g}")
    return SumLayout.of(blocks).arrays(bounded(total.vector / weight, total.longest), blocks)
