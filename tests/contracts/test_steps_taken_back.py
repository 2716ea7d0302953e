"""A step that spoils the model is taken back: which model stays, who is named, and who sits out."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message

from common.arrays import all_finite, norm, scale, sha256
from common.wire.codec import decode, encode
from common.wire.messages import EvaluateReply, EvaluateRequest
from server.aggregation.lengths import ReplyMemory
from server.aggregation.metrics import Evaluation
from server.round.checks import LossWatch
from server.round.state import RunState
from tests.support.strategies import MODEL, NAMES, NODES, Server, every_strategy, good, message_of, reply_of

HUGE = {n: np.full_like(a, 3e38) for n, a in MODEL.items()}


class Judges:
    """Grid whose clients report a loss that explodes with the norm of the model."""

    def __init__(self, limit: float) -> None:
        self.limit, self.asked = limit, list[int]()

    def get_node_ids(self) -> list[int]:
        return [*NODES.values()]

    def send_and_receive(self, messages: Iterable[Message]) -> list[Message]:
        replies = []
        for message in messages:
            self.asked.append(message.metadata.dst_node_id)
            request = decode(EvaluateRequest, message.content)
            loss = 1.0 if norm(request.model) < self.limit else 1e6
            report = EvaluateReply(request.round, {"loss": loss}, {"loss": 1.0})
            message.metadata.__dict__["_message_id"] = "m"
            replies.append(Message(encode(report), reply_to=message))
        return replies


def evaluate(server: Server, grid: Judges) -> list[Evaluation]:
    """Evaluate as Flower does; return what the journal receives."""
    strategy, found = server.strategy, list[Evaluation]()
    strategy.observer = replace(strategy.observer, on_evaluated=lambda number, evaluation: found.append(evaluation))
    messages = list(strategy.configure_evaluate(1, ArrayRecord(), ConfigRecord(), grid))
    strategy.aggregate_evaluate(1, grid.send_and_receive(messages))
    return found


def watched(variant: str) -> Server:
    watch = LossWatch()
    watch.record(1.0)
    server = Server(variant)
    server.change(norm_bound=0.0)
    server.watch(watch)
    return server


@every_strategy
def test_a_step_that_is_not_finite_is_repeated_without_the_longest_update(variant: str) -> None:
    server, without = Server(variant), Server(variant)
    for one in (server, without):
        one.change(norm_bound=0.0)
    huge = message_of("cyd", reply_of("cyd", update=HUGE, examples=1))
    server.strategy.state = replace(server.strategy.state, model={**MODEL, "predictor.b": np.float32([-1e38])})
    without.strategy.state = server.strategy.state
    server.round(*good("ann", "bob"), huge)
    without.round(*good("ann", "bob"))
    assert all_finite(server.strategy.state.model)
    assert all(map(all_finite, server.strategy.state.memory.values()))
    if "cyd" in server.trained[0].rejected:
        assert sha256(server.strategy.state.model) == sha256(without.strategy.state.model)
        assert server.strategy.state.reply_memory.excluded == {"cyd": 6}
        assert server.trained[0].rejected["cyd"].endswith("is not finite; sits out until round 6")


@pytest.mark.parametrize("variant", ["fedavg", "fedrule"])
def test_a_step_that_explodes_the_loss_is_repeated_without_its_outlier(variant: str) -> None:
    server, without = watched(variant), Server(variant)
    liar = reply_of("cyd", update=scale(reply_of("cyd").update, -1e5), gradient=reply_of("cyd").gradient)
    server.round(*good("ann", "bob", "dee"), message_of("cyd", liar))
    without.round(*good("ann", "bob", "dee"))
    limit = norm(without.strategy.state.model) * 1.01
    grid = Judges(limit)
    [evaluation] = evaluate(server, grid)
    assert evaluation.metrics["loss"] == 1.0
    assert sha256(server.strategy.state.model) == sha256(without.strategy.state.model)
    assert (server.strategy.state.round, len(server.trained)) == (1, 2)
    assert server.trained[-1].rejected["cyd"].startswith("the validation loss rose from 1 to 1e+06; sits out")
    assert grid.asked[-3:] == [NODES[name] for name in NAMES if name != "cyd"]


def test_without_a_culprit_the_model_before_stays_and_nobody_is_blamed() -> None:
    server = watched("fedavg")
    server.round(*good())
    [evaluation] = evaluate(server, Judges(norm(server.strategy.state.model) * 1e-3))
    state = server.strategy.state
    assert (state.round, sha256(state.model), state.counted) == (1, sha256(MODEL), {})
    assert (server.trained[-1].rejected, server.trained[-1].server) == ({}, {"taken_back": 1.0})
    assert state.reply_memory.excluded == {}
    assert evaluation.metrics["loss"] == 1e6


def test_the_loss_explodes_for_most_clients_or_not_at_all() -> None:
    watch = LossWatch()
    assert watch.find_explosion(losses(1e6, 1e6)) == ""  # nothing to compare with
    watch.record(2.0)
    watch.record(0.01)
    assert watch.find_explosion(losses(0.9, 1e6, 1e11)) == "the validation loss rose from 2 to 1e+06"
    assert watch.find_explosion(losses(0.9, 1e11)) == ""  # one client does not decide
    assert watch.find_explosion(losses(19.0, 19.0)) == ""
    assert watch.find_explosion(losses(1.0, diverged=2)) == "the validation loss rose from 2 to inf"
    assert np.isnan(losses().median_loss)


def losses(*values: float, diverged: int = 0) -> Evaluation:
    clients = {f"c{k}": {"loss": value} for k, value in enumerate(values)}
    weights = {name: {"loss": 1.0} for name in clients}
    return Evaluation({}, clients, weights=weights, diverged=frozenset(f"d{k}" for k in range(diverged)))


def test_who_sits_out_is_not_asked_until_the_penalty_ends() -> None:
    state = RunState(5, MODEL, reply_memory=ReplyMemory(excluded={"ann": 6, "bob": 5}))
    assert state.reply_memory.without_excluded(dict.fromkeys(NAMES), 6).keys() == {*NAMES} - {"ann"}
    server = Server("fedavg")
    server.strategy.state = state
    asked = server.strategy.configure_train(6, ArrayRecord(), ConfigRecord(), Judges(1.0))
    assert [m.metadata.dst_node_id for m in asked] == [NODES[name] for name in ("bob", "cyd", "dee")]
