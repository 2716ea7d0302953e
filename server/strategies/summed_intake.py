"""Masked uploads of a round: decoded, checked and stored as they arrive."""

from collections.abc import Iterable
from dataclasses import replace

from flwr.app import Message

from common.errors import WireError
from common.secure.terms import SumTerms
from common.wire.codec import decode
from common.wire.messages import LOCAL, TrainReply
from server.aggregation.round_results import Reply
from server.secure.protocol import SumProtocol
from server.secure.uploads import Upload
from server.spool import Spool
from server.strategies.intake import Taken
from server.strategies.replies import content_of
from server.strategies.spec import RoundParts
from server.strategies.step import StepStrategy

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
