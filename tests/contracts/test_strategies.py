"""Contract of every strategy."""

import copy
from pathlib import Path

import numpy as np
import pytest

from common.arrays import add, scale, sha256, sub, zeros_like
from server.aggregation.metrics import Evaluation
from server.exchange.grid import Answer, summarize_exchange
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.journal import Journal, restore
from server.round.state import Trained
from tests.support.strategies import (
    MODEL,
    NAMES,
    NODES,
    Server,
    every_strategy,
    fingerprint,
    good,
    message_of,
    reply_of,
)
from tests.support.toys import instruction

IDENTITY = ("fedavg", "fedprox", "fedrule", "fedrule-eq3", "fedavg-weighted")


def journal_of_a_round(folder: RunDirectory, server: Server) -> Journal:
    """Return a journal that has seen the training of one round."""
    journal = Journal(folder, server.config, server.enrolment)
    answers = [Answer(message, 0.1) for message in good()]
    journal.record_exchange(summarize_exchange([instruction(n) for n in NODES.values()], answers, 0.1))
    return journal


@every_strategy
def test_the_order_of_replies_does_not_matter(variant: str) -> None:
    forth, back = Server(variant), Server(variant)
    assert fingerprint(forth.round(*good())) == fingerprint(back.round(*reversed(good())))


@pytest.mark.parametrize("variant", IDENTITY)
def test_with_one_client_the_model_is_the_client_s(variant: str) -> None:
    state = Server(variant).round(*good("bob"))
    assert sha256(state.model) == sha256(sub(MODEL, reply_of("bob").update))


@every_strategy
def test_zero_updates_do_not_change_the_model(variant: str) -> None:
    zero = zeros_like(MODEL)
    replies = [message_of(name, reply_of(name, update=zero, gradient=zero)) for name in NAMES]
    assert sha256(Server(variant).round(*replies).model) == sha256(MODEL)


@every_strategy
def test_equal_clients_have_the_effect_of_one(variant: str) -> None:
    equal_reply = reply_of("ann", examples=1)
    many, one = Server(variant), Server(variant)
    many.round(*(message_of(name, equal_reply) for name in NAMES))
    one.round(message_of("ann", equal_reply))
    for name, a in many.strategy.state.model.items():
        np.testing.assert_allclose(a, one.strategy.state.model[name], rtol=1e-6)


@every_strategy
def test_arguments_are_not_changed(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    before, replies = server.strategy.state, good(number=2)
    copied, sent = copy.deepcopy(before), [dict(m.content["fedloom"]) for m in replies]
    server.round(*replies)
    assert fingerprint(before) == fingerprint(copied)
    assert (before.round, before.counted) == (1, dict.fromkeys(NAMES, 1))
    assert [dict(message.content["fedloom"]) for message in replies] == sent


@every_strategy
def test_a_round_records_the_aggregated_clients(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    state = server.round(*good("bob", "dee", number=2))
    assert (state.round, state.counted) == (2, {"ann": 1, "bob": 2, "cyd": 1, "dee": 2})


@every_strategy
def test_the_reported_loss_is_the_weighted_mean(variant: str) -> None:
    server = Server(variant)
    losses = {"ann": 1.0, "dee": 3.0}
    server.round(*(message_of(n, reply_of(n, loss=v)) for n, v in losses.items()))
    by_examples = server.config.method_options.weighting == "examples"
    weights = {"ann": 10, "dee": 13} if by_examples else {"ann": 1, "dee": 1}
    expected = sum(weights[n] * losses[n] for n in losses) / sum(weights.values())
    assert server.trained[0].loss == pytest.approx(expected, rel=1e-12)


@every_strategy
def test_a_checkpoint_suffices_for_the_next_round(variant: str, tmp_path: Path) -> None:
    server, folder = Server(variant), RunDirectory(tmp_path, "toy")
    server.round(*good())
    state = server.round(*good("ann", "bob", number=2))
    folder.create({}, {})
    journal_of_a_round(folder, server).record_training(Trained(state, 0.5, {}))

    checkpoint = folder.checkpoints.load_latest()
    assert checkpoint is not None
    restored = restore(checkpoint)
    assert fingerprint(restored) == fingerprint(state)
    assert (restored.round, restored.counted) == (2, state.counted)

    onwards = server.round(*good("bob", "cyd", number=3))
    server.strategy = server.at(restored)
    assert fingerprint(server.round(*good("bob", "cyd", number=3))) == fingerprint(onwards)


@pytest.mark.parametrize("variant", ["fedrule", "fedrule-server-adam", "fedrule-eq3"])
def test_fedrule_broadcasts_the_mean_of_each_client_s_last_round(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    state = server.round(*good("ann", number=2))
    first, second = (server.strategy.method.broadcast(state.memory, number) for number in (1, 2))
    assert sorted(first) == sorted(second) == sorted(MODEL)
    assert server.strategy.method.broadcast(state.memory, 0) == {}
    if variant != "fedrule-eq3":
        assert sha256(second) == sha256(reply_of("ann").gradient)
    else:
        rate = server.config.method_options.lr
        for name, d in second.items():
            np.testing.assert_allclose(d, reply_of("ann").update[name] / (rate * 3), rtol=1e-6)


def test_weights_by_examples_are_shares_of_all_records() -> None:
    state = Server("fedavg-weighted").round(*good("ann", "dee"))
    weighted = add(scale(reply_of("ann").update, 10 / 23), scale(reply_of("dee").update, 13 / 23))
    for name, a in sub(MODEL, weighted).items():
        np.testing.assert_allclose(state.model[name], a, rtol=1e-6)


@pytest.mark.parametrize(("variant", "count"), [("fedga", 5), ("fedavg", 0)])
def test_the_round_s_event_has_the_numbers_of_the_strategy(variant: str, count: int, tmp_path: Path) -> None:
    server, folder = Server(variant), RunDirectory(tmp_path, "toy")
    folder.create({}, {})
    server.round(*good())
    journal = journal_of_a_round(folder, server)
    journal.record_training(server.trained[0])
    journal.record_evaluation(1, Evaluation({}, {}))
    [line] = list(folder.events())
    assert isinstance(line, RoundEvent)
    assert line.server == server.trained[0].server
    assert len(line.server) == count
