"""Masked uploads of a round: decoded, checked and stored as they arrive, and the server step from their secure sum."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, all_finite
from common.errors import WireError
from common.secure.layout import WEIGHT, SumLayout
from common.secure.terms import SumTerms
from common.wire.codec import decode
from common.wire.messages import LOCAL, TrainReply
from server.aggregation.results import Opened, Reply
from server.round.checks import content_of
from server.round.counts import CHANNEL as COUNTS_CHANNEL
from server.round.intake import Taken
from server.round.method import RoundParts
from server.round.spool import Spool
from server.round.state import RunState, Trained
from server.round.step import StepStrategy
from server.secure.protocol import Release, SumProtocol, Total, Upload
from server.secure.store import FixedSum
from server.secure.sums import FEWEST_GROUPS, SumLostError, TooFewUploadsError, bounded, median_of

Uploads = dict[str, Upload]


class SummedIntake(StepStrategy):
    """Base of strategies whose replies may be parts of a secure sum."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._sums: SumProtocol | None = parts.sums
        self._terms: list[SumTerms] = []
        """Terms of each group's sum; empty without secure sums."""
        self._group_of: dict[str, int] = {}
        """Client of the round -> its group."""

    def _terms_of(self, client: str) -> SumTerms:
        return self._terms[self._group_of.get(client, 0)]

    def _split_uploads(self, sums: SumProtocol, messages: Iterable[Message]) -> tuple[Uploads, dict[str, str]]:
        """Return client -> upload of usable replies, and client -> reason for the others."""
        self._spool = None
        uploads: Uploads = {}
        failed: dict[int, str] = {}
        roster = self.enrolment.roster
        for message in messages:
            node = message.metadata.src_node_id
            try:
                uploads[roster.name(node)] = self._upload(sums, message)
            except WireError as error:
                failed[node] = str(error)
        if isinstance(messages, list):  # Flower holds it until the replies of the next round are here
            messages.clear()
        self.enrolment.ledgers.store()
        return uploads, {roster.leave(node, reason): reason for node, reason in failed.items()}

    def _upload(self, sums: SumProtocol, message: Message) -> Upload:
        """Return the upload in a reply, which may have been taken as it arrived.

        Raises:
            WireError: It has none.
        """
        content = content_of(message, self._largest)
        if isinstance(content, Taken):
            taken: Taken[Upload] = content
            return taken.reply()
        return self._accept_upload(sums, decode(TrainReply, content), message.metadata.src_node_id)

    def _accept_upload(self, sums: SumProtocol, reply: TrainReply, node: int) -> Upload:
        self._check(reply)
        if self.cost:
            self.enrolment.ledgers.note(node, reply.ledger)
        return replace(sums.upload(reply, self._terms_of(self.enrolment.roster.name(node))), steps=reply.steps)

    @property
    def _largest(self) -> int:
        return self._sums.limit(self._terms[0]) if self._sums and self._terms else super()._largest

    def _store(self, sent: TrainReply, node: int, spool: Spool) -> Reply | Upload:
        if self._sums is None or not self._terms:
            return super()._store(sent, node, spool)
        upload = self._accept_upload(self._sums, sent, node)
        return replace(upload, load=spool.store(upload.load()))

    def _check(self, reply: TrainReply) -> None:
        """Check what a reply says in plaintext.

        Raises:
            WireError: The round or the number of steps is invalid, or the reply holds values beside its masked ones.
        """
        most = self.config.method_options.steps(LOCAL)
        if reply.round != self.state.round + 1:
            raise WireError(f"reply is of round {reply.round}, not of round {self.state.round + 1}")
        if not 1 <= reply.steps <= most:
            raise WireError(f"invalid reply: {reply.steps} local steps; at most {most} are possible")
        if reply.update or reply.gradient:
            raise WireError("reply holds plaintext values beside its masked ones")


CHANNEL = "train"
"""Channel of the sum of updates."""

BAD_BOXES = 3
"""Number of rounds with a box that does not open, after which a client is asked no more."""


class SummedStrategy(SummedIntake):
    """Base of strategies that step from single replies or, with a protocol of sums, from their sum."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._bad_boxes = Counter[str]()
        self.paying: list[str] = []
        """Clients that pay for the next round."""

    def terms_for(self, client: str) -> str:
        """Return the terms of a client's sum in this round; empty without secure sums."""
        return self._terms_of(client).to_json() if self._terms else ""

    def announce(self, clients: list[str]) -> list[str]:
        """Fix the terms of the next round's sums over these clients; return those that they admit."""
        self.paying, sums = clients, self._sums
        if sums is not None:
            privacy, number = self.config.privacy, self.state.round + 1
            release = Release(self.cost, self.clip * privacy.clip) if privacy.unit == "client" else Release()
            most, blocks = len(self.enrolment.roster.clients), self._blocks()
            self._group_of = sums.assign(number, clients)
            self._terms = [sums.terms(number, channel, blocks, most, release) for channel in self._channels]
            members = [[name for name in clients if self._group_of[name] == g] for g in range(len(self._terms))]
            admitted = (sums.admit(*one) for one in zip(self._terms, members, strict=True))
            self.paying = sorted(chain.from_iterable(admitted))
        return self.paying

    @property
    def has_pending_sum(self) -> bool:
        """True if the clients of one of the next round's sums are final, and it is still to be opened."""
        return any(self._pending())

    def resume_sum(self) -> bool:
        """Return True if clients are not asked: the next round's sums are still to be opened, or are lost."""
        if self._sums and self._sums.is_renewed:
            self.announce([])
            return True
        fixed = [one for one in self._pending() if one]
        if not fixed or len(fixed) < len(self._channels):
            return False
        self._terms, self.paying = [one.terms for one in fixed], [name for one in fixed for name in one.clients]
        self._group_of = {name: g for g, one in enumerate(fixed) for name in one.clients}
        return True

    def unasked(self, clients: list[str]) -> list[str]:
        """Return those of the admitted clients whose sum is not final yet."""
        final = [one is not None for one in self._pending()]
        return [name for name in clients if not (self._terms and final[self._group_of.get(name, 0)])]

    @property
    def _channels(self) -> list[str]:
        groups = self.config.secure_sums.groups
        return [f"{CHANNEL}/{g}" for g in range(groups)] if groups > 1 else [CHANNEL]

    def _pending(self) -> list[FixedSum | None]:
        sums, number = self._sums, self.state.round + 1
        return [sums.pending(number, channel) for channel in self._channels] if sums else []

    def step_from_sum(self, messages: Iterable[Message]) -> bool:
        """Make the server step from the sums of a round; return False without secure sums.

        A sum that is lost leaves the model unchanged.

        Raises:
            QuorumError: Too few uploads, or a helper does not answer.
        """
        sums = self._sums
        if sums is None or not self._terms:
            return False
        uploads, rejected = self._split_uploads(sums, messages)
        before, self._before, self._replies, self.row_ids = self.state, self.state, [], []
        number = before.round + 1
        try:
            state = self._state_after(self._means(sums, uploads, rejected), rejected)
            numbers = self.diagnostics(state.memory)
        except SumLostError as lost:
            state, numbers = replace(before, round=number), {"lost": 1.0}
            rejected |= dict.fromkeys(uploads, str(lost))
        self.state = state
        self._trained = Trained(self.state, float("nan"), rejected, numbers, self.groups())
        self._on_trained(self._trained)
        sums.forget(number, *self._channels, CHANNEL, COUNTS_CHANNEL)
        return True

    def _means(self, sums: SumProtocol, uploads: Uploads, rejected: dict[str, str]) -> list[Opened]:
        """Return the means of each group; add clients that are in none to `rejected`.

        Raises:
            QuorumError: Too few uploads for the only sum, or a helper does not answer.
            SumLostError: The only sum is lost, or fewer than `FEWEST_GROUPS` groups have one.
        """
        is_renewed, found, groups = sums.is_renewed, list[Opened](), len(self._terms)
        for g, terms in enumerate(self._terms):
            members = {name: one for name, one in uploads.items() if self._group_of.get(name, 0) == g}
            try:
                total = sums.total(terms, members, rejected)
                self._bad_boxes.update(total.rejected.keys())
                rejected |= total.rejected
                found.append(self._open(total))
            except (SumLostError, TooFewUploadsError) as failure:
                if is_renewed or groups == 1:
                    raise
                rejected |= dict.fromkeys(members, str(failure))
        if len(found) < min(FEWEST_GROUPS, groups):
            number = self.state.round + 1
            raise SumLostError(f"round {number}: {len(found)} of {groups} groups have a sum, {FEWEST_GROUPS} needed")
        return found

    def _state_after(self, groups: list[Opened], rejected: Mapping[str, str]) -> RunState:
        opened = median_of(groups)
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        with np.errstate(over="ignore", invalid="ignore"):
            updated, memory = self.update(self.state.memory, shared, opened)
        state = self.state.next({**self.state.model, **updated}, memory, opened.names)
        if not all_finite(state.model) or not all(map(all_finite, memory.values())):
            raise SumLostError(f"round {state.round}: the step from the sum is not finite")
        spoilt = [name for name in rejected if self._bad_boxes[name] >= BAD_BOXES]
        return replace(state, guard=state.guard.exclude(spoilt, self.config.rounds))

    def _open(self, total: Total) -> Opened:
        """Return the means over the clients of a sum."""
        blocks = self._blocks()
        weight = float(len(total.clients))
        if WEIGHT in blocks:
            weight = float(SumLayout.of(blocks).arrays(total.vector, blocks)[WEIGHT].item())
            if not weight > 0:
                raise SumLostError(f"round {self.state.round + 1}: the clients' weights sum to {weight:g}")
        mean = bounded(total.vector / weight, total.longest)
        steps = self.config.method_options.steps(LOCAL)
        arrays = SumLayout.of(blocks).arrays(mean, blocks)
        return Opened(total.clients, total.steps, arrays, steps, self.capabilities.per_step)

    def _blocks(self) -> Arrays:
        """Return a template of the vector that each client sends."""
        return self._blocks_of(self.model_for(""))

    def _blocks_of(self, model: Arrays) -> Arrays:
        """Return a template of the vector of a client that trains a model."""
        shared = self.select_uploaded(model)
        arrays = add_prefix("update", shared)
        if self.capabilities.needs_gradient:
            arrays |= add_prefix("gradient", shared)
        if self.capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", shared)
        if self.cost == 0 and self.config.method_options.weighting == "examples":
            arrays[WEIGHT] = np.zeros(1)
        return arrays
