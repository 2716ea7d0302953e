"""Replies of a round before the server step: decoded, checked and, where sums suffice, stored."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, TypeVar

from flwr.app import Message, RecordDict

from common.arrays import Arrays
from common.errors import WireError
from common.wire.codec import Handed, decode
from common.wire.encodings import unpack
from common.wire.messages import LOCAL, TRAIN, TrainReply
from common.wire.sparse_rows import expand
from server.aggregation.lengths import measure
from server.aggregation.round_results import Load, Reply
from server.exchange import Weighed, content_size
from server.plausible import MAX_EXAMPLES, check_size, limit_reply
from server.secure.uploads import Upload
from server.spool import Spool
from server.strategies.norm_bound import BoundedStrategy
from server.strategies.replies import ExpectedReply, accept_reply, content_of, split_replies
from server.strategies.spec import RoundParts

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
