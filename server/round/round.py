"""Round of all methods: enrol, sample the cohort, encode requests, check replies, aggregate.

A method's strategy overrides `update`, and `broadcast` if clients need more than the model.
"""

import logging
from collections.abc import Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from common.wire.codec import encode, to_record
from common.wire.messages import TRAIN, TrainRequest
from server.clients.roster import EnrolledClient, cohort
from server.planning.planner import SLACK
from server.round.evaluation import RequestKey
from server.secure.intake import SummedStrategy

log = logging.getLogger("fedloom.server")


class RoundStrategy(SummedStrategy):
    """Flower strategy of one round; subclasses implement the server step."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Sample the cohort, and return its training requests.

        Raises:
            BudgetSpentError: The run ends early.
        """
        self.require_progress()
        self._send, self._grid = grid.send_and_receive, grid
        self.open_intake()
        if self.resume_sum():
            return []
        clients = self.enrolment.gather(grid, self.config.federation.min_replies)
        minimum = self.cost * self.releases * (1 - SLACK)
        clients = {name: client for name, client in clients.items() if minimum <= client.budget}
        federation, number = self.config.federation, self.state.round + 1
        trusted = {name: c for name, c in clients.items() if not self.state.guard.sits_out(name, number)}
        clients = trusted if len(trusted) >= federation.min_replies else clients
        sampled = cohort(self.config.seed, number, clients, federation.cohort, federation.min_replies)
        sampled = self.unasked(self.announce(sampled))
        self.prepare({name: clients[name] for name in sampled}, self._send, training=True)
        encoded: dict[RequestKey, RecordDict] = {}
        return [self._message(clients[name], TRAIN, self._encode_for(clients[name], encoded)) for name in sampled]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one server step from the replies.

        Raises:
            QuorumError: Fewer usable replies than `federation.min-replies`.
        """
        if self.step_from_sum(replies):
            return to_record(self.state.model), MetricRecord()
        usable, rejected = self._split(replies)
        if isinstance(replies, list):  # Flower holds it until the replies of the next round are here
            replies.clear()
        loss = self._report(self._advance(usable, rejected), rejected)
        return to_record(self.state.model), MetricRecord({} if self.cost > 0 else {"loss": loss})

    def summary(self) -> None:
        """Log the method and its options; Flower calls this at the start."""
        log.info("%s with %s", type(self).__name__, self.config.method_options)

    def _encode_for(self, client: EnrolledClient, encoded: dict[RequestKey, RecordDict]) -> RecordDict:
        """Return the encoded request of a client; `encoded` stores it for clients with an equal request."""
        last = self.state.counted.get(client.name, 0)
        if not self.broadcast(self.state.memory, last):
            last = 0  # else equal requests would be encoded for each
        name = client.name
        key = client.enrolment, last, self.group_of(name), tuple(self.statics_for(name)), self._group_of.get(name, 0)
        if key not in encoded:
            encoded[key] = encode(self._request(client, last))
        return encoded[key]

    def _request(self, client: EnrolledClient, last: int) -> TrainRequest:
        return TrainRequest(
            round=self.state.round + 1,
            enrolment=client.enrolment,
            model=self.model_for(client.name),
            shared=self.broadcast(self.state.memory, last),
            shared_round=last,
            statics=self.statics_for(client.name),
            cost=self.cost,
            clip=self.clip,
            terms=self.terms_for(client.name),
        )
