"""Replies of a round before the server step: decoded, checked, bounded in length."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from flwr.app import Message, RecordDict

from common.arrays import Arrays, norm
from common.contribution import Contribution, Lengths, typical
from common.errors import WireError
from common.tasks.registry import TASKS
from common.wire.codec import Handed, decode
from common.wire.encodings import unpack
from common.wire.messages import LOCAL, TRAIN, TrainReply
from common.wire.sparse_rows import expand
from server.aggregation.lengths import (
    FIRST_REFERENCE,
    LARGE_ROUND,
    RECENT_ROUNDS,
    Excess,
    ReplyMemory,
    allowances,
    find_excess,
    measure,
    references,
    scale_update,
)
from server.aggregation.replies import Load, Reply, add_up, are_summed, average_by_row, select_whole, shorten
from server.aggregation.robust import robust_replies
from server.clients.enrolment import Enrolment
from server.exchange.grid import Weighed, content_size
from server.round.checks import MAX_EXAMPLES, ExpectedReply, accept_reply, check_size, content_of, limit_reply
from server.round.method import Method, RoundContext
from server.round.spool import Spool

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True)
class Intaken:
    """Results of a round before the server step.

    Args:
        replies: Usable replies, single or of blocks; empty if the server receives a secure sum.
        rejected: Client -> reason why its reply is not usable.
        reply_memory: Memory of the checks on replies, after these.
        lengths: Typical lengths of the replies.
        shortened: Client -> length of its reply, which counts at the typical length.
        total: Sums over the clients; None before `Intake.add_up`, or if the sum is lost.
        lost: Reason why a sum is lost; empty if none is.
        notes: Numbers on the results, for the journal.
    """

    replies: list[Reply]
    rejected: dict[str, str]
    reply_memory: ReplyMemory
    lengths: Lengths = field(default_factory=dict)
    shortened: Mapping[str, str] = field(default_factory=dict)
    total: Contribution | None = None
    lost: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)

    def without(self, clients: Collection[str], rejected: Mapping[str, str]) -> "Intaken":
        """Return the results without the replies of these clients."""
        others = [reply for reply in self.replies if reply.client not in clients]
        return replace(self, replies=others, rejected={**self.rejected, **rejected}, total=None)


class Intake(Protocol):
    """Way from the clients' replies to one contribution."""

    @property
    def paying(self) -> list[str]:
        """Clients that pay for the round."""

    def is_pending(self, number: int) -> bool:
        """Return True if clients are not asked: results of the round are still to be opened, or are lost."""

    def has_final(self, number: int) -> bool:
        """Return True if the clients of a sum of the round are final, and it is still to be opened."""

    def open(self, at: RoundContext, clients: Sequence[str]) -> dict[str, str]:
        """Prepare to take replies; return the clients that are asked, with the terms of their replies."""

    def group_of(self, client: str) -> int:
        """Return the number of the client's terms; clients with equal terms share an encoded request."""

    def take(self, node: int, answer: Message) -> None:
        """Examine a training reply as it arrives, and put the outcome in place of its content."""

    def close(self, at: RoundContext, messages: Iterable[Message], phase: str = LOCAL) -> Intaken:
        """Return the results of a round.

        Raises:
            QuorumError: Too few clients for a secure sum, or a helper does not answer.
        """

    def take_all(self, at: RoundContext, messages: Iterable[Message], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the usable replies of a further phase of the round, and client -> reason for the others."""

    def add_up(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return the results with the total over the usable replies."""

    def forget(self, number: int) -> None:
        """Remove what was stored for a round whose checkpoint is written."""


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


def take_reply(answer: Message, limit: float, examine: Callable[[TrainReply], ReplyT]) -> None:
    """Put the outcome of a training reply in place of its content, but for replies inside one process."""
    is_reply = answer.metadata.message_type == TRAIN and answer.has_content()
    if not is_reply or isinstance(answer.content, Handed):
        return
    size = content_size(answer.content)
    try:
        check_size(size, limit)
        outcome: ReplyT | WireError = examine(decode(TrainReply, answer.content))
    except WireError as error:
        outcome = error
    answer.content = Taken(size, outcome)


def split_messages(
    messages: Iterable[Message], enrolment: Enrolment, examine: Callable[[Message], ReplyT]
) -> tuple[dict[str, ReplyT], dict[str, str]]:
    """Return client -> usable reply by name, and client -> reason for the others.

    Clients that failed leave the roster and are invited again in the next round. A list of messages is cleared: Flower
    holds it until the replies of the next round are here.
    """
    usable: dict[str, ReplyT] = {}
    failed: dict[int, str] = {}
    for message in messages:
        node = message.metadata.src_node_id
        try:
            usable[enrolment.roster.name(node)] = examine(message)
        except WireError as error:
            failed[node] = str(error)
    if isinstance(messages, list):
        messages.clear()
    enrolment.ledgers.store()
    return dict(sorted(usable.items())), {
        enrolment.roster.leave(node, reason): reason for node, reason in failed.items()
    }


class SingleIntake:
    """Intake of single replies and of blocks: each one is checked, and compared in length with the others.

    Args:
        enrolment: Clients of the run.
        method: Server step, with the models of the clients and the form of their uploads.
        folder: Folder for replies beyond what stays in memory; None: all stay there.
    """

    def __init__(self, enrolment: Enrolment, method: Method, folder: Path | None) -> None:
        self._enrolment, self._method, self._folder = enrolment, method, folder
        self._at: RoundContext | None = None
        self._uploaded: tuple[Arrays, Arrays] = {}, {}
        """Model of the last reply, and the part of it that clients send updates of."""
        self.spool: Spool | None = None
        """Store of replies as they arrive, where the server step reads them one at a time."""
        self.paying: list[str] = []

    def is_pending(self, number: int) -> bool:
        """Return False: single replies are not stored beyond a round."""
        return False

    def has_final(self, number: int) -> bool:
        """Return False: there is no sum."""
        return False

    def open(self, at: RoundContext, clients: Sequence[str]) -> dict[str, str]:
        """Prepare to take replies; return all clients, without terms."""
        config = at.config
        streams = at.capabilities.sum_only and config.federation.robust == "none" and not config.task_options.named_rows
        self._at, self.spool, self.paying = at, Spool(self._folder) if streams else None, [*clients]
        return dict.fromkeys(clients, "")

    def group_of(self, client: str) -> int:
        """Return 0: replies have no terms."""
        return 0

    def take(self, node: int, answer: Message) -> None:
        """Examine a reply as it arrives, if the server step reads one reply at a time."""
        at, spool = self._at, self.spool
        if at is not None and spool is not None:
            take_reply(answer, self._largest(at), lambda sent: self._store(at, sent, node, spool))

    def close(self, at: RoundContext, messages: Iterable[Message], phase: str = LOCAL) -> Intaken:
        """Return usable replies, without those beyond `federation.norm-bound`."""
        self.spool = None
        usable, rejected = split_messages(messages, self._enrolment, lambda message: self._examine(at, message, phase))
        results = Intaken([*usable.values()], rejected, at.state.reply_memory)
        return self._bound(at, results, phase) if at.config.federation.norm_bound else results

    def add_up(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return the results with the total over whole blocks and single replies, made robust if configured."""
        config, rejected = at.config, dict(results.rejected)
        uploaded = self._method.template(config, at.state.model)
        replies = select_whole(results.replies, rejected, uploaded, at.capabilities)
        results = replace(results, replies=replies, rejected=rejected)
        if len(replies) < config.federation.min_replies:
            return results
        if are_summed(replies):
            return replace(results, total=add_up(replies, at.capabilities))
        tables = uploaded if config.task_options.gathers_rows else None
        return replace(results, total=add_up(self._combine(at, replies), config.capabilities, tables))

    def take_all(self, at: RoundContext, messages: Iterable[Message], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the usable replies of a further phase, made robust as those of the round."""
        results = self.close(at, messages, phase)
        return self._combine(at, results.replies), results.rejected

    def _combine(self, at: RoundContext, replies: list[Reply]) -> list[Reply]:
        """Return replies whose weighted mean is the aggregate by `federation.robust`."""
        federation, state = at.config.federation, at.state

        def group_of(client: str) -> int:
            return self._method.assignment.group_of(state, client)

        return robust_replies(average_by_row(replies), federation.robust, federation.attackers, group_of)

    def forget(self, number: int) -> None:
        """Do nothing: single replies are not stored beyond a round."""

    def _examine(self, at: RoundContext, message: Message, phase: str) -> Reply:
        content = message.content if message.has_content() else RecordDict()
        if isinstance(content, Taken):
            forwarded: Taken[Reply] = content
            return forwarded.reply()
        sent = decode(TrainReply, content_of(message, self._largest(at)))
        return self._accept(at, sent, phase, message.metadata.src_node_id)

    def _store(self, at: RoundContext, sent: TrainReply, node: int, spool: Spool) -> Reply:
        """Return the valid reply without its arrays, which are stored as they were sent."""
        reply = self._accept(at, sent, LOCAL, node)
        template = self._template(at, reply.client)
        stored = {
            "update": _read_full(at, spool.store(sent.update), template),
            "gradient": _read_full(at, spool.store(sent.gradient), template),
        }
        return replace(reply, train=replace(reply.train, update={}, gradient={}), stored=stored)

    def _accept(self, at: RoundContext, sent: TrainReply, phase: str, node: int) -> Reply:
        roster, options = self._enrolment.roster, at.config.method_options
        name, enrolled = roster.name(node), roster.clients.get(node)
        expected = ExpectedReply(
            round=at.number,
            max_steps=options.steps(phase),
            max_examples=enrolled.examples if enrolled else MAX_EXAMPLES,
            task=TASKS[at.config.task],
            model=self._template(at, name),
            needs_gradient=at.capabilities.needs_gradient,
            encoding=at.config.federation.encoding,
        )
        reply, rows = accept_reply(sent, expected, at.config.task_options)
        if at.cost:
            self._enrolment.ledgers.note(node, sent.ledger)
        return Reply(name, options.weight(reply.examples), reply, rows, measure(reply))

    def _largest(self, at: RoundContext) -> int:
        model = at.state.model
        return limit_reply({**model, **self._method.template(at.config, model)})

    def _template(self, at: RoundContext, client: str) -> Arrays:
        model = self._method.assignment.model_for(at, client)
        if self._uploaded[0] is not model:
            self._uploaded = model, self._method.template(at.config, model)
        return self._uploaded[1]

    def _bound(self, at: RoundContext, results: Intaken, phase: str) -> Intaken:
        """Return the results without replies that are too long, and with those that count at the typical norm."""
        excess, lengths = self._find_excess(at, results.replies, phase)
        needed, reply_memory = (
            self._find_needed(at, results.replies, excess) if phase == LOCAL else (set[str](), results.reply_memory)
        )
        left_out = {client: one.reason for client, one in excess.items() if client not in needed}
        counted = [reply for reply in results.replies if reply.client not in left_out]
        return replace(
            results,
            replies=[shorten(r, excess[r.client].factors) if r.client in needed else r for r in counted],
            rejected={**results.rejected, **left_out},
            reply_memory=reply_memory,
            lengths=lengths if phase == LOCAL else {},
            shortened={client: f"{excess[client].reason}; counts at the typical norm" for client in sorted(needed)},
        )

    def _find_excess(self, at: RoundContext, replies: list[Reply], phase: str) -> tuple[dict[str, Excess], Lengths]:
        """Return the replies beyond the bound, and the typical lengths of the others."""
        steps, per_step = at.config.method_options.steps(phase), at.capabilities.per_step
        factors = {r.client: steps / r.train.steps if per_step else 1.0 for r in replies}
        lengths = {r.client: scale_update(r.lengths, factors[r.client]) for r in replies}
        first = math.inf if at.cost else FIRST_REFERENCE * max(1.0, norm(at.state.model))
        limits = references([*lengths.values()], self._past(at) if phase == LOCAL else [], first)
        allowed = allowances({r.client: r.weight for r in replies})
        excess = find_excess(lengths, limits, at.config.federation.norm_bound, allowed)
        return excess, typical([one for client, one in lengths.items() if client not in excess])

    def _find_needed(
        self, at: RoundContext, replies: list[Reply], excess: Mapping[str, Excess]
    ) -> tuple[set[str], ReplyMemory]:
        """Return clients whose too long reply counts at the typical norm, and the new memory.

        One or two replies cannot judge each other, and honest ones can grow: after an absence, or after a step that
        spoiled the model. They count if the other clients do not make a quorum. In a federation of fewer than
        `LARGE_ROUND` clients they also count after `RECENT_ROUNDS` replies in a row that were left out.
        """
        reply_memory, roster = at.state.reply_memory, self._enrolment.roster
        present = roster.select_trainable(roster.present)
        others = [name for name in present if name not in excess and not reply_memory.sits_out(name, at.number)]
        can_judge = len(replies) > 2 or are_summed(replies) or not self._past(at)
        no_quorum = len(others) < at.config.federation.min_replies
        waited = {client for client, number in reply_memory.left_out.items() if number >= RECENT_ROUNDS}
        needed = set[str]() if can_judge else {client for client in excess if no_quorum or client in waited}
        if len(present) < LARGE_ROUND:
            accepted = [reply.client for reply in replies if reply.client not in excess]
            reply_memory = reply_memory.count(excess.keys() - needed, accepted)
        return needed, reply_memory

    def _past(self, at: RoundContext) -> list[Lengths]:
        """Return typical lengths of the last rounds; none if no other client ever took part."""
        is_alone = len({*self._enrolment.roster.by_name(), *at.counted}) == 1
        return [] if is_alone else at.state.reply_memory.past(at.noise)


def _read_full(at: RoundContext, load: Load, template: Arrays) -> Load:
    encoding, gathers = at.config.federation.encoding, at.config.task_options.gathers_rows

    def read() -> Arrays:
        arrays = unpack(load(), encoding)
        return arrays if gathers else expand(arrays, template)

    return read
