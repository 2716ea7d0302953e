"""Preview of a client: the messages of one real round on the owner's data, which are not sent.

Server and client run in this process, with the code of every other run. State and ledger are in memory.
"""

import logging
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flwr.app import Message

from client.data.dataset import AnyDataset
from client.owner.observed_release import ObservedReleaser
from client.policy import Policy
from client.privacy.epsilon_spent import EpsilonSpent, read_epsilon
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.errors import FedloomError
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import outline
from deploy.preview_fields import FieldPreview, describe_fields
from deploy.simulated_session import simulated_policy
from deploy.simulation import InProcessGrid
from server.run import run

CLIENT = "preview"
"""Name of the client in its messages."""


class PreviewEndError(FedloomError):
    """End of the first round, after which a preview stops."""


@dataclass(frozen=True)
class MessagePreview:
    """Reply that the client would send."""

    kind: str
    """`enrol`, `counts`, `assign`, `train` or `evaluate`."""
    refused: str = ""
    """Reason of a refusal, which is then all that would be sent."""
    fields: tuple[FieldPreview, ...] = ()
    content: bytes = field(default=b"", repr=False)
    """Bytes of the message's content as they would be sent."""


@dataclass(frozen=True)
class Preview:
    """Messages of an enrolment and of the first round."""

    config: RunConfig
    messages: tuple[MessagePreview, ...]
    """Messages in the order in which they would be sent."""
    refusals: tuple[MessagePreview, ...]
    """Refusals by the owner's policy; the messages are then those of a client without a policy."""
    epsilon: EpsilonSpent | None
    """ε that the first round costs; None without noise."""
    failure: str = ""
    """Reason why the round could not be completed; empty if it was."""


def preview_messages(config: RunConfig, data: AnyDataset, policy: Policy) -> Preview:
    """Make one round on the data and return what the client would send.

    If the policy refuses the run or a part of it, the round is made again without a policy.

    Args:
        config: Configuration of the run.
        data: The client's data, read under the run's vocabulary.
        policy: The owner's policy.
    """
    preview = _first_round(config, data, policy)
    if not preview.refusals:
        return preview
    allowed = _first_round(config, data, simulated_policy())
    return Preview(config, allowed.messages, preview.refusals, allowed.epsilon, allowed.failure)


def _first_round(config: RunConfig, data: AnyDataset, policy: Policy) -> Preview:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, data)

    releaser = ObservedReleaser(policy)
    session, failure = Session(CLIENT, learner, MemoryStore(), releaser), ""
    grid = _FirstRoundGrid(session, releaser)
    logs = logging.getLogger("fedloom")
    level = logs.level
    logs.setLevel(logging.CRITICAL)  # of the server and the client in this process
    try:
        with tempfile.TemporaryDirectory(prefix="fedloom-preview-") as runs:
            run(grid, _with_vocabulary(config, data, Path(runs)), Path(runs))
    except PreviewEndError:
        pass
    except FedloomError as error:
        failure = str(error)
    finally:
        logs.setLevel(level)
    refusals = tuple(message for message in grid.messages if message.refused)
    epsilon = read_epsilon(releaser.budget, config, grid.enrolment) if grid.enrolment else None
    return Preview(config, tuple(m for m in grid.messages if not m.refused), refusals, epsilon, failure)


def _with_vocabulary(config: RunConfig, data: AnyDataset, folder: Path) -> RunConfig:
    path = folder / "vocabulary.json"
    path.write_text(data.vocabulary.to_json(), "utf-8")
    return config.model_copy(update={"catalogue": str(path)})


class _FirstRoundGrid(InProcessGrid):
    """Grid of one client that records its replies and ends with the first round.

    Args:
        session: The client.
        releaser: Its releaser, which notes exact values.
    """

    def __init__(self, session: Session, releaser: ObservedReleaser) -> None:
        super().__init__({1: session}, together=1)
        self._releaser = releaser
        self.messages: list[MessagePreview] = []
        self.enrolment = ""

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages and record the replies.

        Raises:
            PreviewEndError: The messages belong to the second round, or an evaluation has ended the first.
        """
        messages = list(messages)
        for message in messages:
            if outline(message.content).values.get("round", 0) > 1:
                raise PreviewEndError("the first round is over")
        seen = len(self._releaser.pairs)
        ids = super().push_messages(messages)
        for message in messages:
            self._record(message, self._replies[message.metadata.message_id], seen)
        return ids

    def _train(self, messages: Sequence[Message]) -> list[Message]:
        """Train as a client of its own does: its reply is released and encoded, not handed over."""
        return self._answer(messages)

    def _record(self, message: Message, reply: Message, seen: int) -> None:
        kind = message.metadata.message_type.rpartition(".")[2]
        if reply.has_error():
            refusal = MessagePreview(kind, reply.error.reason or "no reason")
            self.messages += [] if refusal in self.messages else [refusal]
            return
        self.enrolment = str(outline(reply.content).values.get("enrolment", self.enrolment))
        run = self._sessions[1].runs.find(self.enrolment)
        pairs = self._releaser.pairs[seen:]
        fields = describe_fields(reply, run.config, pairs[-1] if pairs else None)
        self.messages.append(MessagePreview(kind, "", fields, reply.content.config_records["fedloom"].deflate()))
