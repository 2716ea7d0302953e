"""Replies of a round before the server step: decoded, checked, bounded in length and, where sums suffice, stored."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from flwr.app import Message, RecordDict

from common.arrays import Arrays, norm, scale
from common.contribution import Lengths, typical
from common.errors import WireError
from common.wire.codec import Handed, decode
from common.wire.encodings import unpack
from common.wire.messages import LOCAL, TRAIN, TrainReply
from common.wire.sparse_rows import expand
from server.aggregation.blocks import are_folded
from server.aggregation.lengths import (
    FIRST_REFERENCE,
    LARGE_ROUND,
    RECENT_ROUNDS,
    Excess,
    allowances,
    find_excess,
    measure,
    references,
    scale_update,
)
from server.aggregation.results import Load, Reply
from server.exchange.grid import Weighed, content_size
from server.round.checks import (
    MAX_EXAMPLES,
    ExpectedReply,
    accept_reply,
    check_size,
    content_of,
    limit_reply,
    split_replies,
)
from server.round.evaluation import EvaluatedStrategy
from server.round.method import RoundParts
from server.round.spool import Spool
from server.secure.protocol import Upload


class BoundedStrategy(EvaluatedStrategy):
    """Base of strategies that compare the lengths of a round's replies."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._typical: Lengths = {}
        self._shortened: dict[str, str] = {}

    def _bound(self, replies: list[Reply], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the replies that count, and client -> reason for those beyond `federation.norm-bound`."""
        if not self.config.federation.norm_bound:
            return replies, {}
        excess = self._find_excess(replies, phase)
        needed = self._find_needed(replies, excess) if phase == LOCAL else ()
        self._shortened = {client: f"{excess[client].reason}; counts at the typical norm" for client in needed}
        left_out = {client: one.reason for client, one in excess.items() if client not in needed}
        counted = [reply for reply in replies if reply.client not in left_out]
        return [shorten(r, excess[r.client].factors) if r.client in needed else r for r in counted], left_out

    def _find_excess(self, replies: list[Reply], phase: str) -> dict[str, Excess]:
        steps = self.config.method_options.steps(phase)
        factors = {r.client: steps / r.train.steps if self.capabilities.per_step else 1.0 for r in replies}
        lengths = {r.client: scale_update(r.lengths, factors[r.client]) for r in replies}
        first = math.inf if self.cost else FIRST_REFERENCE * max(1.0, norm(self.state.model))
        limits = references([*lengths.values()], self._past if phase == LOCAL else [], first)
        allowed = allowances({r.client: r.weight for r in replies})
        excess = find_excess(lengths, limits, self.config.federation.norm_bound, allowed)
        if phase == LOCAL:
            self._typical = typical([one for client, one in lengths.items() if client not in excess])
        return excess

    def _find_needed(self, replies: list[Reply], excess: Mapping[str, Excess]) -> Collection[str]:
        """Return clients whose reply is too long for the last rounds, but counts at the typical norm.

        One or two replies cannot judge each other, and honest ones can grow: after an absence, or after a step that
        spoiled the model. They count if the other clients do not make a quorum. In a federation of fewer than
        `LARGE_ROUND` clients they also count after `RECENT_ROUNDS` replies in a row that were left out.
        """
        guard, roster, following = self.state.guard, self.enrolment.roster, self.state.round + 1
        present = roster.select_trainable(roster.present)
        others = [name for name in present if name not in excess and not guard.sits_out(name, following)]
        can_judge = len(replies) > 2 or are_folded(replies) or not self._past
        no_quorum = len(others) < self.config.federation.min_replies
        waited = {client for client, number in guard.left_out.items() if number >= RECENT_ROUNDS}
        needed = set() if can_judge else {client for client in excess if no_quorum or client in waited}
        if len(present) < LARGE_ROUND:
            accepted = [reply.client for reply in replies if reply.client not in excess]
            self.state = replace(self.state, guard=guard.count(excess.keys() - needed, accepted))
        return needed

    @property
    def _past(self) -> list[Lengths]:
        """Typical lengths of the last rounds; none if no other client ever took part."""
        is_alone = len({*self.enrolment.roster.by_name(), *self.state.counted}) == 1
        return [] if is_alone else self.state.guard.past(self._noise)

    @property
    def _noise(self) -> str:
        """Name of the round's noise, on which the length of an update depends."""
        return f"{self.cost:.6g} {self.clip:.6g}"


def shorten(reply: Reply, factors: Mapping[str, float]) -> Reply:
    """Return the reply with each kind of arrays, `update` or `gradient`, multiplied by its factor."""
    by_kind = {"update": 1.0, "gradient": 1.0, **factors}
    update, gradient = scale(reply.train.update, by_kind["update"]), scale(reply.train.gradient, by_kind["gradient"])
    return replace(
        reply,
        train=replace(reply.train, update=update, gradient=gradient),
        lengths={kind: by_kind[kind] * length for kind, length in reply.lengths.items()},
        stored=reply.stored and {kind: _scaled(load, by_kind[kind]) for kind, load in reply.stored.items()},
    )


def _scaled(load: Load, factor: float) -> Load:
    return lambda: scale(load(), factor)


ReplyT = TypeVar("ReplyT")


class Taken(Weighed, Generic[ReplyT]):
    """Content of a reply that was examined as it arrived.

    Args:
        size: Bytes of the content.
        outcome: The reply, or the reason why it is invalid.
    """

    def __init__(self, size: int, outcome: ReplyT | WireError) -> None:
        super().__init__(size)
        self._outcome = outcome

    def reply(self) -> ReplyT:
        """Return the valid reply.

        Raises:
            WireError: It is invalid.
        """
        if isinstance(self._outcome, WireError):
            raise self._outcome
        return self._outcome


class IntakeStrategy(BoundedStrategy):
    """Base of strategies that train from the replies of a round."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        federation, options = parts.config.federation, parts.config.task_options
        self._takes = self.capabilities.sum_only and federation.robust == "none" and not options.named_rows
        """True if replies are examined as they arrive: the server step reads them one at a time."""
        self._folder = parts.folder
        self._uploaded: tuple[Arrays, Arrays] = {}, {}
        """Model of the last reply, and the part of it that clients send updates of."""
        self._spool: Spool | None = None

    def take(self, node: int, answer: Message) -> None:
        """Examine a training reply as it arrives, and put the outcome in place of its content.

        Replies inside one process stay as they are.
        """
        is_reply = answer.metadata.message_type == TRAIN and answer.has_content()
        if self._spool is None or not is_reply or isinstance(answer.content, Handed):
            return
        size = content_size(answer.content)
        try:
            check_size(size, self._largest)
            outcome: Reply | Upload | WireError = self._store(decode(TrainReply, answer.content), node, self._spool)
        except WireError as error:
            outcome = error
        answer.content = Taken(size, outcome)

    def open_intake(self) -> None:
        """Prepare to take the replies of another round."""
        self._spool = Spool(self._folder) if self._takes else None

    def _split(self, messages: Iterable[Message], phase: str = LOCAL) -> tuple[list[Reply], dict[str, str]]:
        """Return usable replies, ordered by client name, and client -> reason for the others.

        Clients that failed leave the roster and are invited again in the next round.
        """
        self._spool = None
        usable, failed = split_replies(messages, lambda message: self._examine(message, phase))
        self.enrolment.ledgers.store()
        rejected = {self.enrolment.roster.leave(node, reason): reason for node, reason in failed.items()}
        usable, excess = self._bound(usable, phase)
        return usable, {**rejected, **excess}

    def _examine(self, message: Message, phase: str) -> Reply:
        """Return the valid reply in a message.

        Raises:
            WireError: It has none.
        """
        content = message.content if message.has_content() else RecordDict()
        if isinstance(content, Taken):
            taken: Taken[Reply] = content
            return taken.reply()
        sent = decode(TrainReply, content_of(message, self._largest))
        return self._accept(sent, phase, message.metadata.src_node_id)

    @property
    def _largest(self) -> int:
        return limit_reply(self.state.model)

    def _store(self, sent: TrainReply, node: int, spool: Spool) -> Reply | Upload:
        """Return the valid reply without its arrays, which are stored as they were sent."""
        reply = self._accept(sent, LOCAL, node)
        template = self._template(reply.client)
        stored = {
            "update": self._full(spool.store(sent.update), template),
            "gradient": self._full(spool.store(sent.gradient), template),
        }
        return replace(reply, train=replace(reply.train, update={}, gradient={}), stored=stored)

    def _full(self, load: Load, template: Arrays) -> Load:
        encoding, gathers = self.config.federation.encoding, self.config.task_options.gathers_rows

        def read() -> Arrays:
            arrays = unpack(load(), encoding)
            return arrays if gathers else expand(arrays, template)

        return read

    def _accept(self, sent: TrainReply, phase: str, node: int) -> Reply:
        roster, options = self.enrolment.roster, self.config.method_options
        name, enrolled = roster.name(node), roster.clients.get(node)
        expected = ExpectedReply(
            round=self.state.round + 1,
            max_steps=options.steps(phase),
            max_examples=enrolled.examples if enrolled else MAX_EXAMPLES,
            task=self.task,
            model=self._template(name),
            needs_gradient=self.capabilities.needs_gradient,
            encoding=self.config.federation.encoding,
        )
        reply, rows = accept_reply(sent, expected, self.config.task_options)
        if self.cost:
            self.enrolment.ledgers.note(node, sent.ledger)
        return Reply(name, options.weight(reply.examples), reply, rows, measure(reply))

    def _template(self, client: str) -> Arrays:
        model = self.model_for(client)
        if self._uploaded[0] is not model:
            self._uploaded = model, self.select_uploaded(model)
        return self._uploaded[1]
