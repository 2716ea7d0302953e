"""Runs whose clients are in groups with a secure sum each."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from common.arrays import Arrays, norm, sub
from common.config.run import RunConfig
from common.errors import ConfigError
from common.models import parameters
from common.wire.codec import decode, encode
from common.wire.messages import TRAIN, TrainReply
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import read_catalogue
from server.secure.store import SumStore
from server.secure.sums import assign
from tests.deploy.test_sum_faults import KilledError, asked, kill
from tests.support.build import task_model
from tests.support.sum_runs import SumFederation, losing, noised, summed

CLIENTS, GROUPS, LIAR = 9, 3, 1


def grouped(configure: Callable[..., RunConfig] = summed, **options: Any) -> RunConfig:
    return configure(**{"secure-sums__groups": GROUPS, **options})


def model_of(folder: Path) -> Arrays:
    return RunDirectory(folder, "toy").load_model()[0]


def first_model(config: RunConfig) -> Arrays:
    return parameters(task_model(config, read_catalogue(config)))


@pytest.mark.parametrize("method", ["fedavg", "fedga", "fedrule"])
def test_each_number_of_the_model_is_the_median_over_groups(method: str, tmp_path: Path) -> None:
    config = grouped(method=method, rounds=1, weighting="uniform")
    federation = SumFederation(tmp_path / "run", CLIENTS)
    result = federation.run(config)
    assert [one.clients for g in range(GROUPS) for one in federation.sums(f"train/{g}")] == [3, 3, 3]
    assert result.privacy.sums["lost"] == 0
    if method != "fedavg":
        return
    alone, group_of = [], assign([s.client for s in federation.sessions.values()], GROUPS, config.seed, 1, {})
    for g in range(GROUPS):
        part = SumFederation(tmp_path / str(g), CLIENTS)
        part.sessions = {node: s for node, s in part.sessions.items() if group_of[s.client] == g}
        part.connect()
        part.run(summed(trust="local", rounds=1, weighting="uniform"))
        alone.append(model_of(tmp_path / str(g)))
    for name, found in model_of(tmp_path / "run").items():
        np.testing.assert_allclose(found, np.median([one[name] for one in alone], axis=0), atol=1e-5)


def change(message: Message, added: int = 1000 << 32) -> Message:
    """Add 1,000, or another number times 2³², to each number that the liar sends."""
    if message.metadata.message_type == TRAIN and message.metadata.src_node_id == LIAR:
        reply = decode(TrainReply, message.content)
        numbers = reply.masked["sum"]
        reply.masked["sum"] = numbers + numbers.dtype.type(added)
        message.content = encode(reply)
    return message


def test_a_liar_in_one_group_does_not_decide_the_model(tmp_path: Path) -> None:
    steps = {}
    for groups in (1, GROUPS):
        config = grouped(rounds=1, **{"secure-sums__groups": groups})
        federation = SumFederation(tmp_path / str(groups), CLIENTS)
        federation.grid.after = change
        federation.run(config)
        steps[groups] = norm(sub(model_of(tmp_path / str(groups)), first_model(config)))
    honest = SumFederation(tmp_path / "honest", CLIENTS)
    honest.run(grouped(rounds=1))
    step = norm(sub(model_of(tmp_path / "honest"), first_model(grouped())))
    assert steps[1] > 100 * step
    assert steps[GROUPS] < 3 * step


@pytest.mark.parametrize("configure", [noised, summed])
def test_a_server_killed_between_groups_asks_the_others_alone(
    configure: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = grouped(configure, rounds=2)
    whole = SumFederation(tmp_path / "whole", CLIENTS)
    through = whole.run(config)
    federation = SumFederation(tmp_path / "killed", CLIENTS)
    kill(monkeypatch, SumStore, "write_answers", after=True)
    with pytest.raises(KilledError):
        federation.run(config)
    requests = asked(federation.connect())
    resumed = federation.run(config, resume=True)
    assert requests.count((TRAIN, 2)) == 6, "two groups of three"
    assert resumed.model_sha256 == through.model_sha256
    assert federation.spent(config) == whole.spent(config)
    assert resumed.privacy.sums["lost"] == 0


@pytest.mark.parametrize("lie", [-1000, 1000])
def test_weights_of_a_liar_cost_its_group_alone(lie: int, tmp_path: Path) -> None:
    def take_weight(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == LIAR:
            reply = decode(TrainReply, message.content)
            reply.masked["sum"] = reply.masked["sum"].copy()
            reply.masked["sum"][-1:] += np.array([lie << 32]).view(np.uint64)
            message.content = encode(reply)
        return message

    federation = SumFederation(tmp_path, CLIENTS)
    federation.grid.after = take_weight
    result = federation.run(grouped(rounds=1, weighting="examples"))
    [event] = [event for event in RunDirectory(tmp_path, "toy").events() if event.event == "round"]
    assert (result.rounds_done, event.server.get("lost"), len(event.refused)) == (1, None, 3)
    assert "the weights of 3 clients sum to" in event.refused[f"client-{LIAR - 1}"]


def test_who_is_in_each_impossible_group_is_named_and_sits_out(tmp_path: Path) -> None:
    """In turn, the liar's numbers lose the sum, and give a mean of more than ten times the median norm."""
    federation, lies = SumFederation(tmp_path, 13), itertools.cycle([1 << 56, 1000 << 32])

    def lie(message: Message) -> Message:
        is_false = message.metadata.message_type == TRAIN and message.metadata.src_node_id == LIAR
        return change(message, next(lies)) if is_false else message

    federation.grid.after = lie
    federation.run(grouped(rounds=11, **{"secure-sums__groups": 4}))
    rounds = [event for event in RunDirectory(tmp_path, "toy").events() if isinstance(event, RoundEvent)]
    named = [{name: why for name, why in one.refused.items() if "impossible groups" in why} for one in rounds]
    [number] = [one.round for one, found in zip(rounds, named, strict=True) if found]
    assert (named[number - 1].keys(), 8 < number < 11) == ({f"client-{LIAR - 1}"}, True)
    assert not any(one.refused for one in rounds[number:])
    assert not any("lost" in one.server for one in rounds), "the other groups make the step"


def test_a_group_with_too_few_uploads_is_left_out_or_the_round_is_lost(tmp_path: Path) -> None:
    twelve = SumFederation(tmp_path / "four", 12)
    twelve.grid.after = losing(TRAIN, [LIAR])
    result = twelve.run(grouped(rounds=2, **{"secure-sums__groups": 4, "federation__deadline": 1.0}))
    assert (result.rounds_done, result.privacy.sums["opened"] > 6) == (2, True)
    nine = SumFederation(tmp_path / "three", CLIENTS)
    nine.grid.after = losing(TRAIN, [LIAR])
    result = nine.run(grouped(rounds=2, **{"federation__deadline": 1.0}))
    assert result.rounds_done == 2
    first, second = (event for event in RunDirectory(tmp_path / "three", "toy").events() if event.event == "round")
    assert (first.server, second.server.get("lost")) == ({"lost": 1.0}, None)
    assert any("2 of 3 groups have a sum, 3 needed" in why for why in first.refused.values())


def test_two_groups_and_groups_of_clusters_are_refused() -> None:
    with pytest.raises(ConfigError, match="the median of two groups is their mean; say 1, or at least 3"):
        grouped(**{"secure-sums__groups": 2})
    with pytest.raises(ConfigError, match=r"a sum of clusters, which secure-sums\.groups=3 would split"):
        grouped(method="ifca")
