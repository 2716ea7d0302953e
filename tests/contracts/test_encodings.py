"""Runs whose updates are sent with fewer bytes a number: bytes, model, client state, checks of what arrives."""

import re
from pathlib import Path

import numpy as np
import pytest

from client.enrolment import fingerprint
from client.hub.hub import Hub
from common.arrays import Arrays, norm, sub
from common.config.parse import to_json
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.wire.encodings import SCALES, pack, unpack
from common.wire.messages import TRAIN, EnrolRequest, TrainRequest
from deploy.simulation.grid import InProcessGrid
from server.run import run
from studies.lies.liars import Lie, LyingGrid, filled, scaled, trained
from tests.support.build import task_model
from tests.support.hubs import NodeGrid, direct, nodes_of, settings, with_names
from tests.support.owners import model_of, owners
from tests.support.sensors import rounds_of
from tests.support.toys import CATALOGUE, METHODS

LOSS = {"float16": 1e-3, "int8": 0.02}
"""Encoding -> largest relative difference of the models."""


def encoded(folder: Path, encoding: str, method: str = "fedrule", **options: Scalar) -> RunConfig:
    return settings(
        folder, method, federation__encoding=encoding, **{"rounds": 2, "tasks__rules__hidden": 64, **options}
    )


def trained_by(grid: InProcessGrid, config: RunConfig, folder: Path) -> Arrays:
    assert run(grid, config, folder).status == "completed"
    return model_of(folder)


@pytest.mark.parametrize("method", [*METHODS, "fedrep"])
@pytest.mark.parametrize(("encoding", "share"), [("float16", 0.6), ("int8", 0.4)])
def test_the_model_is_almost_that_of_whole_numbers(method: str, encoding: str, share: float, tmp_path: Path) -> None:
    whole, rounded = tmp_path / "whole", tmp_path / "rounded"
    exact = trained_by(InProcessGrid(owners(5).sessions, 1), encoded(tmp_path, "float32", method), whole)
    found = trained_by(InProcessGrid(owners(5).sessions, 5), encoded(tmp_path, encoding, method), rounded)
    assert 0 < norm(sub(found, exact)) < LOSS[encoding] * norm(exact)
    for one, other in zip(rounds_of(rounded), rounds_of(whole), strict=True):
        assert one.refused == {}
        assert one.bytes_up < share * other.bytes_up


@pytest.mark.parametrize("encoding", LOSS)
def test_a_hub_adds_up_what_its_clients_would_send(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.clients.enrolment.NODE_NAME", re.compile(".*"))
    config = encoded(tmp_path, encoding)
    flat = NodeGrid({node: direct(session) for node, session in with_names(owners(5)).items()})
    single = trained_by(flat, config, tmp_path / "flat")
    hubs = {node: one.respond if isinstance(one, Hub) else one for node, one in nodes_of(owners(5), 2).items()}
    summed = trained_by(NodeGrid(hubs), config, tmp_path / "hubs")
    exact = trained_by(InProcessGrid(with_names(owners(5)), 1), encoded(tmp_path, "float32"), tmp_path / "exact")
    assert norm(sub(summed, single)) < 0.2 * norm(sub(exact, single))


@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
def test_control_variates_sum_to_zero(control: str, tmp_path: Path) -> None:
    people = owners(5)
    config = encoded(tmp_path, "int8", rounds=3, control=control, optimizer="sgd", weighting="uniform")
    run(InProcessGrid(people.sessions, 1), config, tmp_path)
    kept = [store.load("toy").groups for store in people.stores.values()]
    for name in kept[0]["delta"]:
        deltas = np.stack([one["delta"][name].numpy() for one in kept])
        np.testing.assert_allclose(deltas.sum(0), 0, atol=1e-5 * max(1.0, np.abs(deltas).max()))
        assert np.abs(deltas).max() > 0, name


HOSTILE: dict[str, tuple[Lie, str]] = {
    "NaN": (trained(update=filled(float("nan"))), "a scale is not positive and finite"),
    "another encoding": (trained(update=lambda update: pack(unpack(update, "int8"), "float16")), "float16"),
    "fewer scales": (trained(update=lambda u: {n: a[:-1] if SCALES in n else a for n, a in u.items()}), "one float16"),
    "long": (trained(update=scaled(1000.0)), "update of norm .* times the typical"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_reply_that_cannot_be_decoded_or_is_too_long_is_left_out(name: str, tmp_path: Path) -> None:
    lie, reason = HOSTILE[name]
    grid = LyingGrid(owners(5).sessions, 2, TRAIN, lie)
    assert run(grid, encoded(tmp_path, "int8", rounds=1, federation__min_replies=4), tmp_path).status == "completed"
    [event] = rounds_of(tmp_path)
    assert event.answered == 4
    assert re.search(reason, event.refused["client-1"])


def test_a_repeated_request_gets_the_same_bytes(tmp_path: Path) -> None:
    session = owners(1).sessions[1]
    config = encoded(tmp_path, "int8")
    session.enrol(request := EnrolRequest("toy", to_json(config), CATALOGUE.to_json()))
    model = parameters(task_model(config, CATALOGUE))
    asked = TrainRequest(1, fingerprint(request), model)
    first, again = session.train(asked), session.train(asked)
    for name, a in first.update.items():
        np.testing.assert_array_equal(again.update[name], a)
