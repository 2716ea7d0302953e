"""Gateway: a node of a server above that passes its requests on to clients of a server of its own."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from flwr.app import Message
from flwr.serverapp import Grid

from client.app import decode_request
from client.enrolment import fingerprint, load_request, save_request
from client.node.replies import failure_reply
from client.state import Store
from common.errors import RefusedError, WireError
from common.node_names import MAX_GATEWAYS
from common.text import printable
from common.wire.codec import encode
from common.wire.hubs import Answer, SumBlob, addressees, asks_for_sums, join_answers
from common.wire.messages import (
    ENROL,
    AssignRequest,
    CountsRequest,
    EnrolReply,
    EnrolRequest,
    EvaluateRequest,
    Payload,
    TrainRequest,
)
from common.wire.sums import HelperReply, HelperRequest
from server.enrolment import ANSWER_SECONDS
from server.passed_run import GONE, SHARE, PassedRun
from server.roster import EnrolledClient

NO_HELPERS = "runs with helpers take no gateways; let each client behind this one join the server by a node of its own"
TOO_DEEP = (
    f"{MAX_GATEWAYS} gateways are on the way already, and no more are allowed; join the server or a gateway above"
)


class Gateway:
    """Node that answers for the clients of its own server.

    Args:
        name: Public name at the server above.
        grid: Connection to the clients.
        clients: Number of clients from which on it takes part in a run.
        store: Store of the accepted invitation, which a restart needs.
        nodes: Folder with the names of clients by their keys; None if names are not bound to keys.
    """

    def __init__(self, name: str, grid: Grid, clients: int, store: Store, nodes: Path | None = None) -> None:
        self.name, self._grid, self._clients, self._store, self._nodes = name, grid, clients, store, nodes
        self._runs: dict[str, PassedRun] = {}

    def respond(self, message: Message) -> Message:
        """Return the answers of the clients that a message is for; a failure of all is an answer too."""
        try:
            request = decode_request(message)
            if isinstance(request, HelperRequest):
                return Message(encode(HelperReply(card="")), reply_to=message)
            answers, total = self._answer(message, request)
            raised = {f"{self.name}/{name}": answer for name, answer in answers.items()}
            if total:
                total = replace(total, clients=tuple(f"{self.name}/{name}" for name in total.clients))
            return Message(join_answers(raised, total), reply_to=message)
        except Exception as error:
            return failure_reply(message, error)

    def _answer(self, message: Message, request: Payload) -> tuple[Mapping[str, Answer], SumBlob | None]:
        """Return the answer of each client by its name here, and the sum of those that are in one."""
        names = [self._own_name(name) for name in addressees(message.content)]
        if isinstance(request, EnrolRequest):
            return self._enrol(request, names, SHARE * min(_seconds_left(message), ANSWER_SECONDS)), None
        if not isinstance(request, CountsRequest | AssignRequest | TrainRequest | EvaluateRequest):
            raise WireError(f"{type(request).__name__} is an answer, not a request")
        run = self._runs.get(request.enrolment)
        if run is None:  # this process has restarted
            run = self._open(load_request(self._store, request.enrolment), SHARE * _seconds_left(message))
        seconds = SHARE * _seconds_left(message)
        if isinstance(request, TrainRequest):
            return run.train(request, names or [*run.clients], seconds, sums=asks_for_sums(message.content))
        return run.ask(message.metadata.message_type, request, names or [*run.clients], seconds), None

    def _enrol(self, request: EnrolRequest, names: Sequence[str], seconds: float) -> dict[str, Answer]:
        """Return the enrolment of all or of the named clients; a refusal is passed on to them.

        Raises:
            RefusedError: The run takes no gateway, has passed too many, or too few clients are here.
        """
        if request.helpers:
            raise RefusedError(NO_HELPERS)
        if request.hops >= MAX_GATEWAYS:
            raise RefusedError(TOO_DEEP)
        run = self._runs.get(fingerprint(request))
        if request.refusal:
            return run.ask(ENROL, request, names or [*run.clients], seconds) if run else {}
        if run is None or not names:
            run = self._open(request, seconds)
        else:
            run.invite_again(names)
        found = {name: encode(self._raised(client)) for name, client in run.clients.items()}
        return {name: found.get(name, GONE) for name in names or found}

    def _open(self, request: EnrolRequest, seconds: float) -> PassedRun:
        """Return the run of an invitation, in which enough clients take part.

        Raises:
            RefusedError: They did not come within so many seconds.
        """
        run = PassedRun(self._grid, request, self._clients, self._nodes, seconds)
        run.assemble()
        save_request(self._store, request)
        self._runs = {fingerprint(request): run}
        return run

    def _raised(self, client: EnrolledClient) -> EnrolReply:
        about = client.enrolment, client.examples, client.budget, client.shares_metrics
        return EnrolReply(f"{self.name}/{client.name}", *about, ledger=client.ledger)

    def _own_name(self, name: str) -> str:
        own, slash, rest = name.partition("/")
        if own != self.name or not slash:
            raise WireError(f"'{printable(name, 80)}' is no client of the gateway '{self.name}'")
        return rest


def _seconds_left(message: Message) -> float:
    """Return the seconds that a server waits for the reply; the clocks of both machines may differ."""
    about = message.metadata
    return max(1.0, min(about.ttl, about.created_at + about.ttl - time.time()))
