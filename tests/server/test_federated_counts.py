"""Sums of counts: included and omitted clients."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest
from flwr.app import Error, Message

from common.errors import DataError, QuorumError
from common.tasks.registry import TASKS
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.codec import encode
from common.wire.messages import CountsReply
from server.clients.roster import EnrolledClient, Roster
from server.round.state import RunState
from server.run import sum_counts

ONES = np.ones((2, 3, 4), np.float32)
NAMES = RuleCatalogue(entities=("a", "b", "c"), relations=tuple(f"on → {r}" for r in "wxyz"))
STATE = RunState(0, {"w": np.zeros(1, np.float32)})


class Counters:
    """A Grid whose node k answers with its counts, or fails with a text."""

    def __init__(self, answers: dict[int, np.ndarray | str]) -> None:
        self.answers = answers

    def get_node_ids(self) -> Iterable[int]:
        return list(self.answers)

    def send_and_receive(self, messages: Iterable[Message]) -> list[Message]:
        replies = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = "m"
            answer = self.answers[message.metadata.dst_node_id]
            content = Error(1000, answer) if isinstance(answer, str) else encode(CountsReply({"counts": answer}))
            replies.append(Message(content, reply_to=message))
        return replies


def total(answers: dict[int, np.ndarray | str], examples: int = 1) -> np.ndarray:
    roster = Roster()
    for node in answers:
        roster.enrol(EnrolledClient(f"client-{node}", node, "toy:0", examples))
    return sum_counts(Counters(answers), roster, STATE, partial(TASKS["rules"].add_counts, vocabulary=NAMES)).statics[
        "counts"
    ]  # type: ignore[arg-type]


def test_the_counts_of_all_are_summed() -> None:
    np.testing.assert_array_equal(total({11: ONES, 12: 2 * ONES, 13: 4 * ONES}), 7 * ONES)


@pytest.mark.parametrize("bad", ["no", ONES[:1], ONES.astype(np.float64), np.full_like(ONES, np.nan)])
def test_invalid_counts_are_omitted(bad: np.ndarray | str) -> None:
    np.testing.assert_array_equal(total({11: ONES, 12: bad, 13: ONES}), 2 * ONES)


def test_no_counts_at_all_end_the_run_with_advice() -> None:
    with pytest.raises(QuorumError, match=r"no client shared its counts; set count-offset=false"):
        total({11: "no", 12: "no"})
    assert STATE.statics == {}


def test_clients_without_training_data_end_the_run_before_counts_are_requested() -> None:
    with pytest.raises(DataError, match=r"^2 clients enrolled, none has training data$"):
        total({11: ONES, 12: ONES}, examples=0)


def test_the_reasons_of_missing_counts_are_listed() -> None:
    with pytest.raises(QuorumError, match=r"to train without them; counts are mine; no$"):
        total({11: "no", 12: "counts are mine", 13: "no"})
