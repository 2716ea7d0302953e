"""Lies of helpers and clients during secure sums: rounds are dropped, and the mean stays within its bound."""

import math
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from client.secure.upload import SumPart
from common.arrays import Ints
from common.config.run import RunConfig
from common.errors import RefusedError
from common.models import parameters
from common.secure import norms
from common.secure.quantisation import fixed_scale
from common.secure.terms import SumTerms
from common.wire.codec import decode, encode
from common.wire.messages import OPEN, TRAIN, OpenReply, OpenRequest, TrainReply
from fedloom import simulate
from server.record.folder import RunDirectory
from server.run import read_catalogue
from tests.support.build import task_model
from tests.support.sum_runs import SumFederation, losing, noised, summed

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


@pytest.mark.parametrize(
    ("configure", "reason"),
    [
        (noised, "beyond what its clients can make"),
        (summed, "sum of helper 'helper-0' is not that of the clients' masks"),
    ],
)
def test_random_numbers_of_a_helper_drop_the_round_and_leave_the_model(
    configure: Callable[..., RunConfig], reason: str, tmp_path: Path
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
    assert [(one.clients, reason in one.lost) for one in federation.sums()] == [(0, True)] * 2
    assert distance(federation, config) == 0


def test_a_lie_within_the_noise_moves_the_model_no_further_than_clients_and_noise_can(tmp_path: Path) -> None:
    federation, config, asked = SumFederation(tmp_path), noised(rounds=1), list[SumTerms]()

    def note(message: Message) -> None:
        if message.metadata.message_type == OPEN:
            asked.append(SumTerms.from_json(decode(OpenRequest, message.content).terms))

    def lie(message: Message) -> Message:
        if message.metadata.message_type == OPEN and message.metadata.src_node_id == FIRST_HELPER:
            reply = decode(OpenReply, message.content)
            message.content = encode(
                replace(reply, opened={"sum": reply.opened["sum"] - np.uint64(8 * asked[0].noise)})
            )
        return message

    federation.grid.before, federation.grid.after = note, lie
    federation.run(config)
    [found], terms = federation.sums(), asked[0]
    noise = terms.noise * terms.clip / terms.bound * math.sqrt(2 * terms.size) / found.clients
    assert (found.lost, found.rejected) == ("", {}), "it is not named"
    assert 0.99 * (terms.clip + 1.1 * noise) < distance(federation, config) < 1.01 * (terms.clip + 1.1 * noise)


def test_a_helper_that_adds_one_to_one_number_is_named(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def add_one(message: Message) -> Message:
        if message.metadata.message_type == OPEN and message.metadata.src_node_id == FIRST_HELPER + 1:
            reply = decode(OpenReply, message.content)
            numbers = reply.opened["sum"].copy()
            numbers[3] += np.uint64(1)
            message.content = encode(replace(reply, opened={"sum": numbers}))
        return message

    federation.grid.after = add_one
    assert federation.run(summed(rounds=1)).privacy.sums == {"opened": 0, "lost": 2}
    assert "the sum of helper 'helper-1' is not that" in federation.sums()[0].lost


def test_a_longer_vector_is_named_and_the_round_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The liar adds the largest norm to its first number, and proves the rest by the protocol."""
    exact, masked = norms.complete, SumPart.mask

    def complete(numbers: Ints, bound: int) -> Ints:
        with suppress(ValueError):
            return exact(numbers, bound)
        return np.concatenate([numbers, np.zeros(norms.SQUARES, np.int64)])

    def mask(part: SumPart, numbers: Ints) -> bytes:
        lie = part.terms.bound if part.party.client == "client-0" else 0
        return masked(part, np.concatenate([numbers[:1] + lie, numbers[1:]]))

    monkeypatch.setattr(norms, "complete", complete)
    monkeypatch.setattr(SumPart, "mask", mask)
    liar, honest = SumFederation(tmp_path / "liar"), SumFederation(tmp_path / "honest")
    config = noised(rounds=1)
    liar.run(config)
    [found] = liar.sums()
    assert (found.clients, found.lost) == (3, "")
    assert found.rejected == {"client-0": "its proof fails: the vector is longer than the terms allow"}
    monkeypatch.setattr(SumPart, "mask", masked)
    honest.grid.after = losing(TRAIN, [FIRST])
    honest.run(config)
    assert distance(liar, config) == distance(honest, config) > 0


def test_an_upload_that_is_changed_on_its_way_does_not_fit_its_seeds(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def change(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == FIRST:
            reply = decode(TrainReply, message.content)
            changed = {**reply.masked, "sum": reply.masked["sum"] + np.uint64(1)}
            message.content = encode(replace(reply, masked=changed))
        return message

    federation.grid.after = change
    federation.run(noised(rounds=1))
    assert [one.rejected for one in federation.sums()] == [{"client-0": "helper 'helper-1' cannot open its box"}]


def test_a_statistic_that_no_data_of_the_clients_give_drops_the_sum(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def add(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == FIRST:
            reply = decode(TrainReply, message.content)
            numbers = reply.masked["sum"].copy()
            numbers[0] += np.array(-5.0 * fixed_scale(64)).astype(np.int64).view(np.uint64)
            message.content = encode(replace(reply, masked={**reply.masked, "sum": numbers}))
        return message

    federation.grid.after = add
    with pytest.raises(RefusedError, match=r"round 1: statistic 'ease_used' has .*so start a new run"):
        federation.run(summed("ridge"))


@pytest.mark.parametrize("task", ["sessions", "ratings"])
def test_sums_of_honest_clients_with_many_records_are_complete(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = simulate(task, data="demo:0-12", helpers=2, settings={"secure-sums.min-sum": 5})
    assert (found.result.status, found.result.rounds_done) == ("completed", found.result.rounds)


def distance(federation: SumFederation, config: RunConfig) -> float:
    """Return the distance of the run's model from its initial one."""
    initial = parameters(task_model(config, read_catalogue(config)))
    model, _ = RunDirectory(federation.runs, "toy").load_model()
    return math.sqrt(sum(float(np.sum((model[name] - a).astype("<f8") ** 2)) for name, a in initial.items()))
