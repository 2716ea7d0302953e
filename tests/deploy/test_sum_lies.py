"""Lies of helpers and clients during secure sums: rounds are dropped, and the mean stays within its bound."""

import math
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from common.config.run import RunConfig
from common.models import parameters
from common.secure.terms import SumTerms
from common.wire.codec import decode, encode
from common.wire.messages import OPEN, TRAIN, OpenReply, TrainReply, TrainRequest
from server.record.folder import RunDirectory
from server.run import read_catalogue
from tests.support.build import task_model
from tests.support.sum_runs import SumFederation, noised, summed

FIRST, FIRST_HELPER = 1, 5


def test_numbers_beyond_what_clients_can_make_drop_the_round(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def spoil(message: Message) -> Message:
        if message.metadata.message_type == OPEN and message.metadata.src_node_id == FIRST_HELPER:
            reply = decode(OpenReply, message.content)
            message.content = encode(
                replace(reply, opened={"sum": reply.opened["sum"] + reply.opened["sum"].dtype.type(2**31)})
            )
        return message

    federation.grid.after = spoil
    result = federation.run(noised(rounds=2))
    assert result.privacy.sums == {"opened": 0, "lost": 2}
    assert "beyond what its clients can make together" in federation.sums()[0].lost


@pytest.mark.parametrize("configure", [noised, summed])
def test_random_numbers_of_a_helper_drop_the_round_and_leave_the_model(
    configure: Callable[..., RunConfig], tmp_path: Path
) -> None:
    federation, config = SumFederation(tmp_path), configure(rounds=2)

    def answer_at_random(message: Message) -> Message:
        if message.metadata.message_type == OPEN and message.metadata.src_node_id == FIRST_HELPER:
            reply = decode(OpenReply, message.content)
            numbers = reply.opened["sum"]
            drawn = np.frombuffer(secrets.token_bytes(numbers.nbytes), numbers.dtype)
            message.content = encode(replace(reply, opened={"sum": drawn}))
        return message

    federation.grid.after = answer_at_random
    federation.run(config)
    assert [(one.clients, "beyond what its clients can make" in one.lost) for one in federation.sums()] == [
        (0, True)
    ] * 2
    assert distance(federation, config) == 0


@pytest.mark.parametrize("share", [1, 4])
def test_a_liar_moves_the_mean_by_no_more_than_its_clip_and_noise(share: int, tmp_path: Path) -> None:
    """Each number of its vector is that share of the largest one of a client, or the largest that the sum's range allows."""
    federation, config = SumFederation(tmp_path), noised(rounds=1)
    seen: list[SumTerms] = []

    def lie(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == FIRST:
            reply = decode(TrainReply, message.content)
            masked = reply.masked["sum"]
            message.content = encode(replace(reply, masked={"sum": masked + masked.dtype.type(share * seen[0].bound)}))
        return message

    def look(message: Message) -> None:
        if message.metadata.message_type == TRAIN:
            seen.append(SumTerms.from_json(decode(TrainRequest, message.content).terms))

    federation.grid.before, federation.grid.after = look, lie
    federation.run(config)
    assert [(one.clients, one.lost) for one in federation.sums()] == [(4, "")]
    terms, helpers, clients = seen[0], 2, 4
    noise = terms.noise * math.sqrt(helpers * terms.size) * terms.clip / (terms.bound * clients)
    assert 0.999 < distance(federation, config) / (terms.clip + 1.1 * noise) <= 1 + 1e-5


def distance(federation: SumFederation, config: RunConfig) -> float:
    """Return the distance of the run's model from its initial one."""
    initial = parameters(task_model(config, read_catalogue(config)))
    model, _ = RunDirectory(federation.runs, "toy").load_model()
    return math.sqrt(sum(float(np.sum((model[name] - a).astype("<f8") ** 2)) for name, a in initial.items()))
