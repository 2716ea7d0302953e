"""Replies of a round before the server step: decoded, checked, bounded in length."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, norm
from common.config.run import RunConfig
from common.contribution import GRADIENT, UPDATE, BlockReply, Contribution, Lengths
from common.errors import FedloomError, WireError
from common.tasks.closed_form import Entries
from common.tasks.registry import TASKS
from common.wire.codec import Handed, decode
from common.wire.encodings import unpack
from common.wire.messages import LOCAL, TRAIN, TrainReply
from common.wire.sparse_rows import expand
from server.aggregation.alignment import (
    MIN_CLIENTS,
    SUSPICION,
    cosines,
    directions,
    find_coalition,
    find_opposed,
    outliers,
)
from server.aggregation.lengths import (
    FIRST_REFERENCE,
    LARGE_ROUND,
    RECENT_ROUNDS,
    Excess,
    ReplyMemory,
    judge_lengths,
    limit_claims,
    measure,
    scale_update,
)
from server.aggregation.replies import Load, Reply, add_up, are_summed, average_by_row, select_whole, shorten
from server.aggregation.robust import limit_items, robust_replies
from server.clients.enrolment import Enrolment
from server.exchange.grid import Weighed, content_of, content_size
from server.round.checks import MAX_EXAMPLES, ExpectedReply, accept_reply, check_entries, limit_reply, lowest_loss
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
        suspects: Clients that are opposed to the others in this round, on whose replies the clients vote.
    """

    replies: list[Reply]
    rejected: dict[str, str]
    reply_memory: ReplyMemory
    lengths: Lengths = field(default_factory=dict)
    shortened: Mapping[str, str] = field(default_factory=dict)
    total: Contribution | None = None
    lost: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)
    suspects: Sequence[str] = ()

    def without(self, clients: Collection[str], rejected: Mapping[str, str]) -> "Intaken":
        """Return the results without the replies of these clients."""
        others = [reply for reply in self.replies if reply.client not in clients]
        return replace(self, replies=others, rejected={**self.rejected, **rejected}, total=None)

    def set_aside(self, clients: Collection[str]) -> "Intaken":
        """Return the results without the replies of these clients, which the round counts and does not name."""
        aside = self.notes.get("set_aside", 0.0) + len(clients)
        return replace(self.without(clients, {}), notes={**self.notes, "set_aside": aside})


class RepeatedError(FedloomError):
    """Loss of a round's results that costs no more than asking again."""


class Intake(Protocol):
    """Way from the clients' replies to one contribution."""

    paying: list[str]
    """Clients that pay for the round."""

    @property
    def largest(self) -> int:
        """Largest size of a training reply in bytes, once the round is open."""

    def is_pending(self, number: int) -> bool:
        """Return True if clients are not asked: results of the round are still to be opened, or are lost."""
        return False

    def has_final(self, number: int) -> bool:
        """Return True if the clients of a sum of the round are final, and it is still to be opened."""
        return False

    def open(self, at: RoundContext, clients: Sequence[str]) -> dict[str, str]:
        """Prepare to take replies; return the clients that are asked, with the terms of their replies."""

    def take(self, node: int, answer: Message) -> None:
        """Examine a training reply as it arrives, and put the outcome in place of its content."""

    def close(self, at: RoundContext, messages: Iterable[Message], phase: str = LOCAL) -> Intaken:
        """Return the results of a round.

        Raises:
            QuorumError: Too few clients for a secure sum, or a helper does not answer.
            RepeatedError: The results are lost, and the round is asked again.
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


def take_reply(answer: Message, examine: Callable[[TrainReply], ReplyT]) -> None:
    """Put the outcome of a training reply in place of its content, but for replies inside one process."""
    is_reply = answer.metadata.message_type == TRAIN and answer.has_content()
    if not is_reply or isinstance(answer.content, Handed):
        return
    size = content_size(answer.content)
    try:
        outcome: ReplyT | WireError = examine(decode(TrainReply, answer.content))
    except WireError as error:
        outcome = error
    answer.content = Taken(size, outcome)


def split_messages(
    messages: Iterable[Message], enrolment: Enrolment, accept: Callable[[TrainReply, int, str], ReplyT]
) -> tuple[dict[str, ReplyT], dict[str, str]]:
    """Return client -> usable reply by name, and client -> reason for the others.

    Clients that failed leave the roster and are invited again in the next round. A list of messages is cleared: Flower
    holds it until the replies of the next round are here.

    Args:
        messages: Replies.
        enrolment: Clients of the run.
        accept: Function of a reply, its node and its client that returns the valid reply, or raises WireError. Replies that
            were examined as they arrived need none.
    """
    usable: dict[str, ReplyT] = {}
    failed: dict[int, str] = {}
    for message in messages:
        node = message.metadata.src_node_id
        name = enrolment.roster.name(node)
        try:
            content = content_of(message)
            if isinstance(content, Taken):
                usable[name] = content.reply()
            else:
                usable[name] = accept(decode(TrainReply, content), node, name)
        except WireError as error:
            failed[node] = str(error)
    if isinstance(messages, list):
        messages.clear()
    enrolment.ledgers.store()
    return dict(sorted(usable.items())), {
        enrolment.roster.leave(node, reason): reason for node, reason in failed.items()
    }


class SingleIntake(Intake):
    """Intake of single replies and of blocks: each one is checked, and compared in length with the others.

    Without a folder, all replies stay in memory.
    """

    def __init__(self, config: RunConfig, enrolment: Enrolment, method: Method, folder: Path | None) -> None:
        self._config, self._enrolment, self._method, self._folder = config, enrolment, method, folder
        self._capabilities, options, self._robust = config.capabilities, config.task_options, config.robust
        self._names_rows = bool(options.named_rows)
        self._streams = self._capabilities.sum_only and self._robust == "none" and not self._names_rows
        self._expected = ExpectedReply(
            lowest_loss(TASKS[config.task]),
            self._capabilities.needs_gradient,
            config.federation.encoding,
            self._names_rows,
            config.keeps_rows,
        )
        form = TASKS[config.task].closed_form if self._capabilities.closed_form else None
        self._entries: Mapping[str, Entries] = {} if form is None else form.entries
        counts = [name for name, one in self._entries.items() if one.low >= 0]
        self._counts = {name: names for name, names in (form.lasting if form else {}).items() if name in counts}
        self._at: RoundContext | None = None
        """Round whose replies are expected, in this phase."""
        self._phase = LOCAL
        self._uploaded: tuple[Arrays, Arrays, Arrays] = {}, {}, {}
        """Model of the last reply, and the part of it that clients send updates of."""
        self.spool: Spool | None = None
        """Store of replies as they arrive, where the server step reads them one at a time."""
        self.paying, self._limit = [], 0

    @property
    def largest(self) -> int:
        """Largest size of a training reply in bytes."""
        return self._limit

    def open(self, at: RoundContext, clients: Sequence[str]) -> dict[str, str]:
        """Prepare to take replies; return all clients, without terms."""
        self.spool, self.paying = Spool(self._folder) if self._streams else None, [*clients]
        self._expect(at, LOCAL)
        return dict.fromkeys(clients, "")

    def take(self, node: int, answer: Message) -> None:
        """Examine a reply as it arrives, if the server step reads one reply at a time."""
        at, spool = self._at, self.spool
        if at is not None and spool is not None:
            take_reply(answer, lambda sent: self._store(at, sent, node, spool))

    def close(self, at: RoundContext, messages: Iterable[Message], phase: str = LOCAL) -> Intaken:
        """Return usable replies, without those beyond `federation.norm-bound` or of opposed clients."""
        self.spool = None
        if at is not self._at or phase != self._phase:
            self._expect(at, phase)
        usable, rejected = split_messages(messages, self._enrolment, partial(self._accept, at))
        results = Intaken([*usable.values()], rejected, at.state.reply_memory)
        if not at.config.federation.norm_bound:
            return results
        results = self._bound(at, results, phase)
        return self._align(at, results) if phase == LOCAL else results

    def add_up(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return the results with the total over whole blocks and single replies, made robust if configured."""
        rejected, uploaded = dict(results.rejected), self._template(at, at.state.model)
        replies = select_whole(results.replies, rejected, uploaded, self._capabilities)
        results = replace(results, replies=replies, rejected=rejected)
        if len(replies) < at.config.federation.min_replies:
            return results
        if are_summed(replies):
            return replace(results, total=add_up(replies, self._capabilities))
        tables = uploaded if self._expected.keeps_rows else None
        return replace(results, total=add_up(self._combine(at, replies), self._capabilities, tables))

    def take_all(self, at: RoundContext, messages: Iterable[Message], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the usable replies of a further phase, made robust as those of the round."""
        results = self.close(at, messages, phase)
        return self._combine(at, results.replies), results.rejected

    def forget(self, number: int) -> None:
        """Do nothing: single replies are not stored beyond a round."""

    def _combine(self, at: RoundContext, replies: list[Reply]) -> list[Reply]:
        """Return replies whose weighted mean is the aggregate by `federation.robust`."""
        if self._names_rows:
            replies = average_by_row(replies)
        if self._robust == "none" or (at.config.federation.robust == "auto" and len(replies) < MIN_CLIENTS):
            return replies
        group_of = partial(self._method.assignment.group_of, at.state)
        return robust_replies(replies, self._robust, at.config.federation.attackers, group_of)

    def _expect(self, at: RoundContext, phase: str) -> None:
        """Prepare to examine the replies in a phase of a round."""
        self._at, self._phase = at, phase
        steps = at.config.method_options.steps(phase)
        self._expected = replace(self._expected, round=at.number, max_steps=steps)
        upload = self._template(at, self._method.assignment.model_for(at, ""))
        self._limit = limit_reply(upload, has_gradient=self._expected.needs_gradient)

    def _store(self, at: RoundContext, sent: TrainReply, node: int, spool: Spool) -> Reply:
        """Return the valid reply without its arrays, which are stored as they were sent."""
        reply = self._accept(at, sent, node, self._enrolment.roster.name(node))
        template = self._template(at, self._method.assignment.model_for(at, reply.client))
        stored = {
            "update": self._read_full(spool.store(sent.update), template),
            "gradient": self._read_full(spool.store(sent.gradient), template),
        }
        return replace(reply, train=replace(reply.train, update={}, gradient={}), stored=stored)

    def _read_full(self, load: Load, template: Arrays) -> Load:
        def read() -> Arrays:
            arrays = unpack(load(), self._expected.encoding)
            return arrays if self._expected.keeps_rows else expand(arrays, template)

        return read

    def _accept(self, at: RoundContext, sent: TrainReply, node: int, name: str) -> Reply:
        enrolled = self._enrolment.roster.clients.get(node)
        template = self._template(at, self._method.assignment.model_for(at, name))
        most = enrolled.examples if enrolled else MAX_EXAMPLES
        reply, rows = accept_reply(sent, self._expected, template, most)
        if at.cost:
            self._enrolment.ledgers.note(node, sent.ledger)
        elif self._entries and not isinstance(reply, BlockReply):
            check_entries(reply.update, self._entries, reply.examples)
        weight = at.config.method_options.weight(reply.examples, at.config.secure_sums.most_examples)
        return Reply(name, weight, reply, rows, measure(reply))

    def _template(self, at: RoundContext, model: Arrays) -> Arrays:
        """Return the part of a model that clients send updates of."""
        if self._uploaded[0] is not model or self._uploaded[1] is not at.state.statics:
            self._uploaded = model, at.state.statics, self._method.template(at, model)
        return self._uploaded[2]

    def _bound(self, at: RoundContext, results: Intaken, phase: str) -> Intaken:
        """Return the results without replies that are too long, and with those that count at the typical norm."""
        steps = self._expected.max_steps if self._capabilities.per_step else 0
        lengths = {r.client: scale_update(r.lengths, steps / r.train.steps if steps else 1.0) for r in results.replies}
        is_sum = self._capabilities.closed_form  # each of which has its own scale
        first = math.inf if at.cost or is_sum else FIRST_REFERENCE * max(1.0, norm(at.state.model))
        weights, is_local = {r.client: self._bound_weight(r) for r in results.replies}, phase == LOCAL
        past = self._past(at) if is_local and not is_sum else []
        weights = limit_claims(weights, lengths) if is_sum else weights
        judged = judge_lengths(lengths, weights, past, first, at.config.federation.norm_bound)
        excess, clipped = judged.excess, dict(judged.clipped)
        needed, memory = (
            self._find_needed(at, results.replies, excess, past) if is_local else (set(), results.reply_memory)
        )
        clipped |= {client: excess[client].factors for client in needed}
        left_out = {client: one.reason for client, one in excess.items() if client not in needed}
        counted = [reply for reply in results.replies if reply.client not in left_out]
        return replace(
            results,
            replies=[
                shorten(r, clipped[r.client], counts_clients=self._capabilities.min_count > 0)
                if r.client in clipped and not isinstance(r.train, BlockReply)
                else r
                for r in counted
            ],
            rejected={**results.rejected, **left_out},
            reply_memory=memory,
            lengths=judged.usual if is_local else {},
            shortened={client: f"{excess[client].reason}; counts at the typical norm" for client in sorted(needed)},
        )

    def _align(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return the results without opposed clients and coalitions, if the others are a quorum.

        Who is persistently opposed is named. Who is opposed in this round alone is a suspect: clients with validation data
        vote on it, and without such data it does not count in this round. Who was in a coalition never counts again.
        """
        names = [reply.client for reply in results.replies]
        if at.cost or are_summed(results.replies) or len(names) < MIN_CLIENTS:
            return results
        if self._capabilities.closed_form:
            return self._bound_items(at, results)
        memory, opposed, suspects, allied = results.reply_memory, dict[str, str](), set[str](), set[str]()
        for kind in (UPDATE, GRADIENT) if self._capabilities.needs_gradient else (UPDATE,):
            found = dict[str, float]()
            for loads in self._by_model(at, results.replies, kind):
                members, rows = directions(loads)
                coalition = find_coalition(rows) | np.array([one in memory.allied for one in members], bool)
                allied |= {members[k] for k in np.flatnonzero(coalition)}
                found |= cosines(members, rows, coalition)
            memory = memory.align(kind, found)
            opposed |= find_opposed(memory.alignment[kind], names)
            suspects |= outliers(found, SUSPICION)
        if len(allied) < len(names) / 2:
            memory = replace(memory, allied=tuple(sorted(allied | {*memory.allied})))
        return self._set_aside(at, replace(results, reply_memory=memory), opposed, suspects - allied, allied)

    def _bound_items(self, at: RoundContext, results: Intaken) -> Intaken:
        """Return statistics with limited items, without clients that have `norm-bound` times the limit of one."""
        federation, columns = at.config.federation, -1 if self._capabilities.min_count else None
        replies, most = limit_items(results.replies, self._counts, at.state.statics, federation.attackers, columns)
        aside = {client for client, excess in most.items() if excess > federation.norm_bound}
        return self._set_aside(at, replace(results, replies=replies), {}, set(), aside)

    def _set_aside(
        self,
        at: RoundContext,
        results: Intaken,
        opposed: Mapping[str, str],
        suspects: Collection[str],
        allied: Collection[str],
    ) -> Intaken:
        """Return the results without these clients, if the others are a quorum; clients may vote."""
        most = len(results.replies) - at.config.federation.min_replies
        opposed = opposed if len(opposed) <= most else {}
        memory = results.reply_memory.exclude(opposed, at.rounds)
        results = replace(results.without(opposed, opposed), reply_memory=memory)
        if at.config.task_options.validation_share > 0:
            results, suspects = replace(results, suspects=sorted({*suspects} - opposed.keys())), ()
        aside = {*suspects, *allied} - opposed.keys()
        if not aside or len(opposed) + len(aside) > most:
            return results
        return results.set_aside(aside)

    def _by_model(self, at: RoundContext, replies: Sequence[Reply], kind: str) -> Iterable[Mapping[str, Load]]:
        """Return the updates or gradients of the clients of each model."""
        groups: dict[int, dict[str, Load]] = {}
        for reply in replies:
            template = self._template(at, self._method.assignment.model_for(at, reply.client))
            load = partial(_read_whole, reply, kind, template)
            groups.setdefault(self._method.assignment.group_of(at.state, reply.client), {})[reply.client] = load
        return groups.values()

    def _bound_weight(self, reply: Reply) -> float:
        """Return the weight of a reply in the bound on its norm; statistics are sums that grow with records."""
        return reply.train.examples**-2.0 if self._capabilities.closed_form else reply.weight

    def _find_needed(
        self, at: RoundContext, replies: list[Reply], excess: Mapping[str, Excess], past: Sequence[Lengths]
    ) -> tuple[set[str], ReplyMemory]:
        """Return clients whose too long reply counts at the typical norm, and the new memory.

        One or two replies cannot judge each other, and honest ones can grow: after an absence, or after a step that
        spoiled the model. They count if the other clients do not make a quorum. In a federation of fewer than
        `LARGE_ROUND` clients they also count after `RECENT_ROUNDS` replies in a row that were left out.
        """
        memory, roster = at.state.reply_memory, self._enrolment.roster
        present = roster.select_trainable(roster.present)
        others = memory.without_excluded(present, at.number).keys() - excess.keys()
        can_judge = len(replies) > 2 or are_summed(replies) or not past
        no_quorum = len(others) < at.config.federation.min_replies
        waited = {client for client, number in memory.left_out.items() if number >= RECENT_ROUNDS}
        needed = set[str]() if can_judge else {client for client in excess if no_quorum or client in waited}
        if len(present) < LARGE_ROUND:
            accepted = [reply.client for reply in replies if reply.client not in excess]
            memory = memory.count(excess.keys() - needed, accepted)
        return needed, memory

    def _past(self, at: RoundContext) -> list[Lengths]:
        """Return typical lengths of the last rounds; none if no other client ever took part."""
        is_alone = len({*self._enrolment.roster.by_name(), *at.state.counted}) == 1
        return [] if is_alone else at.state.reply_memory.past(at.noise)


def _read_whole(reply: Reply, kind: str, template: Arrays) -> Arrays:
    """Return the update or gradient of a reply with full tables."""
    return expand(reply.update if kind == UPDATE else reply.gradient, template)
