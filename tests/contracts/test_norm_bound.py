"""Replies that are longer than the bound: who is left out, who is named, and whose reply counts at the typical norm."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Message

from common.arrays import scale, sha256
from common.errors import QuorumError
from server.clients.roster import EnrolledClient
from server.record.journal import restore, to_checkpoint
from tests.support.strategies import NODES, Server, every_strategy, good, message_of, reply_of


@every_strategy
def test_an_update_beyond_the_bound_is_left_out_and_the_memory_survives_a_restart(variant: str) -> None:
    server, without = Server(variant), Server(variant)
    for one in (server, without):
        one.round(*good())
    long = reply_of("dee", 2, update=scale(reply_of("dee").update, 200.0))
    checkpoint = to_checkpoint(server.strategy.state, 0, {})
    server.strategy = server.at(restore(checkpoint))
    server.round(*good("ann", number=2), message_of("dee", long))
    without.round(*good("ann", number=2))
    assert sha256(server.strategy.state.model) == sha256(without.strategy.state.model)
    assert "times the typical" in server.trained[-1].rejected["dee"]
    assert server.strategy.state.reply_memory == replace(without.strategy.state.reply_memory, left_out={"dee": 1})


def test_a_round_without_enough_other_replies_fails_with_the_figure() -> None:
    server = Server("fedavg")
    server.round(*good())
    with pytest.raises(QuorumError, match="times the typical"):
        server.round(message_of("ann", reply_of("ann", 2, update=scale(reply_of("ann").update, 1e6))))


def long(name: str, number: int, factor: float = 40.0) -> Message:
    one = reply_of(name, number)
    return message_of(name, replace(one, update=scale(one.update, factor), gradient=scale(one.gradient, factor)))


@every_strategy
def test_who_is_left_alone_counts_at_the_typical_norm_of_the_last_rounds(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    before = server.strategy.state
    server.enrolment.roster.select_uninvited([NODES["ann"]])
    models = []
    for factor in (40.0, 1e30):
        server.strategy.state = before
        server.round(long("ann", 2, factor))
        models.append(server.strategy.state)
        assert server.trained[-1].rejected == {}
        assert server.trained[-1].shortened["ann"].endswith("federation.norm-bound is 10; counts at the typical norm")
    for name, a in models[0].model.items():
        np.testing.assert_allclose(a, models[1].model[name], rtol=1e-5)
    assert models[0].reply_memory == models[1].reply_memory == before.reply_memory


def test_a_reply_without_which_there_is_no_quorum_counts_at_the_typical_norm() -> None:
    server = Server("fedavg", min_replies=2)
    server.enrolment.roster.select_uninvited([NODES["ann"], NODES["bob"]])
    server.round(*good("ann", "bob"))
    server.round(*good("ann", number=2), long("bob", 2))
    assert (server.trained[-1].rejected, server.trained[-1].shortened.keys()) == ({}, {"bob"})


def test_who_is_left_out_for_five_rounds_of_a_small_federation_counts_at_the_typical_norm() -> None:
    server = Server("fedavg")
    server.round(*good("ann", "bob"))
    for number in range(2, 7):
        server.round(*good("ann", number=number), long("bob", number))
        assert server.trained[-1].rejected.keys() == {"bob"}
    checkpoint = to_checkpoint(server.strategy.state, 0, {})
    server.strategy = server.at(restore(checkpoint))
    server.round(*good("ann", number=7), long("bob", 7))
    assert (server.trained[-1].rejected, server.trained[-1].shortened.keys()) == ({}, {"bob"})
    server.round(*good("ann", "bob", number=8))
    assert server.strategy.state.reply_memory.left_out == {}
    server.round(*good("ann", number=9), long("bob", 9))
    assert server.trained[-1].rejected.keys() == {"bob"}


def test_in_a_larger_federation_too_long_replies_stay_left_out() -> None:
    server = Server("fedavg")
    server.enrolment.roster.enrol(EnrolledClient("eve", 14, "toy:0", 14))
    server.enrolment.roster.select_uninvited([*NODES.values(), 14])
    server.round(*good("ann", "bob"))
    for number in range(2, 9):
        server.round(*good("ann", number=number), long("bob", number))
        assert server.trained[-1].rejected.keys() == {"bob"}
    assert server.strategy.state.reply_memory.left_out == {}
