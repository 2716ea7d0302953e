"""A federation behind a gateway ends as the same clients on nodes of their own."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from client.state import MemoryStore
from common.arrays import norm
from common.options import Scalar
from common.wire.messages import TRAIN
from server.run import run
from tests.contracts.test_hostile_sums import fill, summed
from tests.contracts.test_hubs import run_flat
from tests.support.gateways import NAME, behind, gateway, gateway_of, respondents
from tests.support.hubs import NodeGrid, lying, nodes_of, settings, split
from tests.support.owners import model_of, noisy, owners
from tests.support.sensors import rounds_of

METHODS: list[tuple[str, dict[str, Scalar]]] = [
    ("fedrule", {}),
    ("fedrule", {"federation__encoding": "int8"}),
    ("fedga", {}),
    ("ifca", {"clusters": 2}),
    ("ditto", {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_single_replies_through_a_gateway_end_in_the_bits_of_single_nodes(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, method, rounds=2, federation__answer="replies", **options)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    passed = run(behind(gateway_of(owners(5))), config, tmp_path / "gateway")
    assert passed.model_sha256 == flat.model_sha256
    assert passed.metrics == flat.metrics
    assert [*passed.clients] == [f"{NAME}/{name}" for name in flat.clients]
    both = zip(rounds_of(tmp_path / "gateway"), rounds_of(tmp_path / "flat"), strict=True)
    assert all((h.asked, h.answered, h.loss) == (f.asked, f.answered, f.loss) for h, f in both)


@pytest.mark.parametrize("method", ["fedrule", "fedga", "fedyogi"])
def test_sums_of_a_gateway_train_the_model_of_single_nodes(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, method, rounds=2)
    run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    run(behind(gateway_of(owners(5), together=2)), config, tmp_path / "gateway")
    passed, flat = model_of(tmp_path / "gateway"), model_of(tmp_path / "flat")
    assert norm(passed) == pytest.approx(norm(flat), rel=1e-6)
    for name, a in flat.items():
        np.testing.assert_allclose(passed[name], a, rtol=1e-4, atol=1e-5)


def test_a_gateway_behind_a_gateway_changes_nothing_but_names(tmp_path: Path) -> None:
    config = settings(tmp_path, rounds=2, federation__answer="replies")
    once = run(behind(gateway_of(owners(5))), config, tmp_path / "once")
    inner = gateway_of(owners(5), name="inner")
    twice = run(behind(gateway({7: inner.respond})), config, tmp_path / "twice")
    assert twice.model_sha256 == once.model_sha256
    assert "west/inner/a/client-0" in twice.clients


def test_noise_and_costs_are_those_of_single_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = noisy(tmp_path, rounds=2, federation__answer="replies")
    alone, passed = owners(5), owners(5)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, alone)
    assert run(behind(gateway_of(passed)), config, tmp_path / "gateway").model_sha256 == flat.model_sha256
    assert passed.spent(config) == alone.spent(config)
    assert all(cost > 0 for cost in passed.spent(config).values())


def test_a_gateway_leaves_out_the_sum_of_a_hub_that_cannot_be_true(tmp_path: Path) -> None:
    liar, honest = split(owners(5))
    one = gateway({**honest, 8: lying(liar, TRAIN, summed(lambda sums: fill(sums, 1e9)))})
    run(behind(one), settings(tmp_path, rounds=1, federation__min_clients=3), tmp_path)
    [event] = rounds_of(tmp_path)
    assert event.answered == 3
    assert "sum of updates has norm 1e+09" in event.refused["west/a/client-0"]


def test_a_round_that_lost_its_gateway_is_asked_again_and_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"rounds": 2, "federation__answer": "replies", "federation__min_replies": 5, "federation__deadline": 1.0}
    config = settings(tmp_path, **quick, federation__wait=20.0)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    nodes, store, trained = respondents(nodes_of(owners(5))), MemoryStore(), list[int]()
    gateways = [gateway(nodes, store=store)]

    def dying(message: Message) -> Message | None:
        reply = gateways[-1].respond(message)
        trained.append(message.metadata.message_type == TRAIN)
        if sum(trained) != 2 or len(gateways) > 1:
            return reply
        gateways.append(gateway(nodes, store=store))  # the reply is lost with the process
        return None

    passed = run(NodeGrid({4: dying}), config, tmp_path / "gateway")
    assert len(gateways) == 2
    assert passed.model_sha256 == flat.model_sha256


def test_a_client_that_did_not_answer_its_gateway_is_asked_again_as_one_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"rounds": 2, "federation__answer": "replies", "federation__min_replies": 5, "federation__deadline": 1.0}
    config = settings(tmp_path, **quick, federation__wait=20.0)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    nodes, asked = respondents(nodes_of(owners(5))), list[str]()

    def restarted(message: Message) -> Message | None:
        asked.append(message.metadata.message_type)
        return None if asked.count(TRAIN) == 1 else nodes[3](message)

    passed = run(behind(gateway({**nodes, 3: restarted})), config, tmp_path / "gateway")
    assert asked.count(TRAIN) == 3
    assert passed.model_sha256 == flat.model_sha256
