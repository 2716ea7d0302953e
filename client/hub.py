"""Hub: one node that answers for several clients.

Each has its own data, policy, ledger, state and name.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flwr.app import Message

from client.app import decode_request, dispatch
from client.hosted_state import flush_all
from client.node.replies import failure, failure_reply
from client.session import Session
from client.training.cohort import train
from client.training.participant import Participant
from common.errors import WireError
from common.wire.codec import encode
from common.wire.hubs import Answer, addressees, join_answers
from common.wire.messages import Payload, TrainReply, TrainRequest
from common.wire.sums import HelperReply, HelperRequest

GONE = WireError("this hub does not host such a client")


class Hub:
    """Clients of one node; each answers as it would on a node of its own.

    Args:
        sessions: Clients by their names at the hub.
        together: Largest number of clients that train stacked; 1 gives the bits of single clients.
    """

    def __init__(self, sessions: Mapping[str, Session], together: int) -> None:
        self.sessions, self._together = dict(sessions), together

    def respond(self, message: Message) -> Message:
        """Return the answers of the clients that a message is for; a failure of all is an answer too."""
        try:
            names, request = addressees(message.content) or [*self.sessions], decode_request(message)
            if isinstance(request, HelperRequest):
                return Message(encode(HelperReply(card="")), reply_to=message)
            return Message(join_answers(self.answer(message.metadata.message_type, request, names)), reply_to=message)
        except Exception as error:
            return failure_reply(message, error)

    def answer(self, kind: str, request: Payload, names: Sequence[str]) -> dict[str, Answer]:
        """Return each client's answer to one request."""
        here = {name: self.sessions[name] for name in names if name in self.sessions}
        if isinstance(request, TrainRequest):
            answers = self._train(kind, request, here)
        else:
            answers = {name: _attempt(kind, partial(dispatch, session, request)) for name, session in here.items()}
        return {name: answers[name] if name in answers else failure(kind, GONE) for name in names}

    def _train(self, kind: str, request: TrainRequest, sessions: Mapping[str, Session]) -> dict[str, Answer]:
        """Train in cohorts of clients with data of similar size, which need little padding."""
        answers: dict[str, Answer] = {}
        ready: list[tuple[str, Participant]] = []
        for name, session in sessions.items():
            try:
                ready.append((name, session.participant(request)))
            except Exception as error:
                answers[name] = failure(kind, error)
        ready.sort(key=lambda pair: pair[1].learner.size)
        for first in range(0, len(ready), self._together):
            cohort = ready[first : first + self._together]
            for (name, participant), outcome in zip(cohort, self._outcomes(cohort), strict=True):
                release = partial(sessions[name].release, participant, partial(_result, outcome))
                answers[name] = _attempt(kind, release)
        unwritten = flush_all({name: sessions[name].store for name, _ in ready})
        return answers | {name: failure(kind, error) for name, error in unwritten.items()}

    def _outcomes(self, cohort: Sequence[tuple[str, Participant]]) -> Sequence[TrainReply | Exception]:
        """Return each participant's reply or error; if a cohort fails, its participants train one by one."""
        options = self.sessions[cohort[0][0]].config(cohort[0][1].request.enrolment).method_options
        try:
            return train(options, [participant for _, participant in cohort])
        except Exception as error:
            return [error] if len(cohort) == 1 else [self._outcomes([one])[0] for one in cohort]


def _result(outcome: TrainReply | Exception) -> TrainReply:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _attempt(kind: str, work: Callable[[], Payload]) -> Answer:
    try:
        return encode(work())
    except Exception as error:
        return failure(kind, error)
