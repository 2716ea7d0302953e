"""Runs whose server learns sums alone: models, ledgers, results and refusals."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.config.parse import parse
from common.config.run import RunConfig
from common.contribution import Contribution, find_doubtful
from common.errors import ConfigError, QuorumError
from common.options import Scalar
from common.tasks.registry import TASKS
from common.wire.messages import TRAIN
from deploy.simulation import blocks as population
from deploy.simulation.grid import simulate
from server.aggregation.replies import Reply
from server.record.folder import RunDirectory
from server.record.result import Result
from server.round import intake
from tests.support.sum_runs import MIN_SUM, POLICY, SumFederation, noised, summed
from tests.support.toys import toy_dataset


def model_of(folder: Path) -> dict[str, Any]:
    return RunDirectory(folder, "toy").load_model()[0]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("fedavg", {}),
        ("fedavg", {"weighting": "examples"}),
        ("fedprox", {}),
        ("fedadam", {}),
        ("fedrule", {}),
        ("fedga", {}),
        ("fedrep", {}),
        ("ditto", {}),
    ],
)
def test_sums_without_noise_train_the_model_of_single_replies(
    method: str, options: dict[str, Any], tmp_path: Path
) -> None:
    for trust in ("local", "helpers"):
        SumFederation(tmp_path / trust).run(summed(method, trust, **options))
    local, opened = model_of(tmp_path / "local"), model_of(tmp_path / "helpers")
    assert local.keys() == opened.keys()
    for name in local:
        np.testing.assert_allclose(opened[name], local[name], atol=1e-5)


@pytest.mark.parametrize("method", ["fedavg", "fedrule"])
def test_releases_to_noised_sums_are_charged_under_their_trust(method: str, tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path), noised(method=method)
    result = federation.run(config)
    assert result.rounds_done == 3
    for session in federation.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        assert len(entries) == 3
        assert all(entry.terms.trust.startswith("helpers:") for entry in entries)
        assert {entry.terms.mechanism for entry in entries} == {"discrete-gaussian-sum"}


def test_the_result_says_that_noise_makes_weights_uniform(tmp_path: Path) -> None:
    result = SumFederation(tmp_path).run(noised(rounds=1, weighting="examples"))
    stored = json.loads((tmp_path / "toy" / "result.json").read_text())
    assert stored["privacy"]["weights"] == result.privacy.weights
    assert result.privacy.weights.startswith("uniform: weighting=examples needs numbers of records")


def test_the_result_names_the_helpers_and_counts_the_sums(tmp_path: Path) -> None:
    privacy = SumFederation(tmp_path, helpers=3).run(summed(**{"secure-sums__helpers": 3})).privacy
    assert (privacy.trust, privacy.min_sum) == ("helpers", MIN_SUM)
    assert list(privacy.helpers) == ["helper-0", "helper-1", "helper-2"]
    assert all(fingerprint.startswith("SHA256:") for fingerprint in privacy.helpers.values())
    assert privacy.sums == {"opened": 6, "lost": 0}  # of updates and of metrics


def test_a_run_by_itself_finds_helpers_that_are_online(tmp_path: Path) -> None:
    assert SumFederation(tmp_path, clients=MIN_SUM).run(summed(trust="auto")).privacy.trust == "helpers"
    assert RunDirectory(tmp_path, "toy").config()["privacy.trust"] == "helpers"


def test_a_run_by_itself_is_announced_again_where_owners_pinned_no_helper(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, policy=POLICY.model_copy(update={"helpers_on_first_use": False}))
    with pytest.raises(QuorumError, match="are pinned, the policy requires 2"):
        federation.run(summed(run_id="explicit"))
    result = federation.run(summed(trust="auto"))
    assert (result.status, result.privacy.trust, len(result.clients)) == ("completed", "local", 4)
    assert RunDirectory(tmp_path, "toy").config()["federation.min-clients"] == 2


@pytest.mark.parametrize(("mechanism", "trust"), [("laplace", "helpers"), ("privunit", "local")])
def test_helpers_add_the_noise_where_the_task_itself_prefers_a_mechanism_of_clients(
    mechanism: str, trust: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS["rules"].network, "privacy.mechanism", "laplace")
    result = SumFederation(tmp_path, clients=MIN_SUM).run(noised(trust="auto", privacy__mechanism=mechanism))
    assert result.privacy.trust == trust
    stored = RunDirectory(tmp_path, "toy").config()["privacy.mechanism"]
    assert stored == ("gaussian" if trust == "helpers" else mechanism)


ROBUST = {"federation__robust": "median", "federation__min-replies": 3}


@pytest.mark.parametrize(
    ("clients", "helpers", "options", "reason"),
    [
        (MIN_SUM, 1, {}, "helper-0: 1 helper online, 2 required (secure-sums.helpers)"),
        (MIN_SUM - 1, 2, {}, "helper-0, helper-1: 2 clients online, 3 required for a sum (secure-sums.min-sum)"),
        (5, 2, ROBUST, "helper-0, helper-1: federation.robust=median needs the replies of single clients"),
        (5, 0, ROBUST, ""),
        (MIN_SUM, 0, {}, ""),
    ],
)
def test_a_run_by_itself_is_local_where_no_sum_is_possible(
    clients: int, helpers: int, options: dict[str, Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fedloom.server")
    result = SumFederation(tmp_path, clients, helpers).run(summed(trust="auto", **options))
    assert result.privacy.trust == "local"
    assert RunDirectory(tmp_path, "toy").config()["privacy.trust"] == "local"
    found = [(one.levelname, one.message) for one in caplog.records if "privacy.trust" in one.message]
    assert found == ([("INFO", f"privacy.trust=auto: updates are not masked by {reason}")] if reason else [])
    assert not any("refused" in one.message for one in caplog.records)


def test_clients_of_other_runs_send_single_replies(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)
    kinds: list[str] = []
    federation.grid.before = lambda message: kinds.append(message.metadata.message_type)
    federation.run(summed(trust="local"))
    assert TRAIN in kinds
    assert not federation.sums()


def test_a_run_waits_for_its_helpers(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="1 helper online, 2 required"):
        SumFederation(tmp_path, helpers=1).run(summed(**{"secure-sums__wait": 0.05}))


def test_a_sum_too_small_for_an_owner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuorumError):
        SumFederation(tmp_path, clients=2).run(summed(**{"federation__wait": 0.1}))


def simulated(settings: Callable[..., RunConfig], runs: Path, noise_seed: int | None = None, **options: Any) -> Result:
    named = {"privacy__trust": "helpers", "secure-sums__min-sum": MIN_SUM, **options}
    return simulate(settings("fedavg", **named), toy_dataset(4), runs, noise_seed=noise_seed)


def test_a_simulation_opens_its_own_helpers(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    helped = simulated(settings, tmp_path / "helpers")
    local = simulated(settings, tmp_path / "local", privacy__trust="local")
    assert (local.privacy.trust, helped.privacy.trust) == ("local", "helpers")
    assert helped.metrics["loss"] == pytest.approx(local.metrics["loss"], abs=1e-5)


def test_a_simulation_with_seeded_noise_can_be_made_again(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    noise = {"privacy__unit": "client", "privacy__epsilon": 50.0}
    seeds = {"a": 1, "b": 1, "c": 2}
    runs = {name: simulated(settings, tmp_path / name, seed, **noise).model_sha256 for name, seed in seeds.items()}
    assert runs["a"] == runs["b"] != runs["c"]


def test_a_complete_run_cannot_go_on(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path), summed()
    federation.run(config)
    with pytest.raises(ConfigError, match="deleted its keys"):
        federation.run(config.model_copy(update={"rounds": 4}), resume=True)


def test_a_round_keeps_sums_in_place_of_replies(
    settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Reply]] = []
    add_up = intake.add_up

    def watched(replies: list[Reply], *arguments: Any) -> Contribution:
        seen.append(replies)
        return add_up(replies, *arguments)

    monkeypatch.setattr(intake, "add_up", watched)
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    simulate(settings("fedrule", rounds=1), toy_dataset(8), tmp_path, together=4)
    assert not any(reply.train.update or reply.train.gradient for reply in seen[0])
    assert len(seen[0]) == 8


@pytest.mark.parametrize(
    ("bound", "reference", "expected"),
    [(10.0, {}, [2, 3]), (10.0, {"update": 0.1}, [2, 3]), (10.0, {"update": 5.0}, [3]), (0.0, {}, [3])],
)
def test_doubtful_are_lengths_from_half_of_the_bound_on_and_numbers_that_are_none(
    bound: float, reference: dict[str, float], expected: list[int]
) -> None:
    lengths = {"update": np.array([1.0, 1.0, 6.0, np.nan, 1.0])}
    assert find_doubtful(reference, np.full(5, bound), lengths, np.zeros(5)) == expected
    assert find_doubtful(reference, np.full(5, bound), lengths, np.full(5, np.inf)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("method", "options", "reason"),
    [
        ("fedavg", {"federation__robust": "median", "federation__min-replies": 3}, "single clients"),
        ("ifca", {"assign": "capacity"}, "single clients"),
        ("local", {}, "local sends no updates"),
        ("fedavg", {"privacy__unit": "client", "privacy__mechanism": "laplace"}, "mechanism=laplace"),
        ("fedavg", {"privacy__unit": "record", "privacy__metric-share": 0.1}, "metric-share is noise of helpers"),
    ],
)
def test_runs_that_need_single_replies_are_refused(method: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        summed(method, **options)


@pytest.mark.parametrize(
    ("method", "options", "reason"),
    [
        ("fedstl", {"task": "traffic"}, "fedstl judges single clients' properties"),
        (
            "fedstl",
            {"task": "traffic", "algorithm.fedstl.criterion": "loss", "algorithm.fedstl.cluster-steps": 0},
            "fedstl judges single clients' losses",
        ),
        ("pfgnn", {"task": "markets"}, "pfgnn takes encoders and cluster summaries of single markets"),
        (
            "fedavg",
            {"task": "ratings", "model": "paper", "tasks.ratings.items": "paper"},
            "the server adds up the rows of table 'items' that each client names (tasks.ratings)",
        ),
    ],
)
def test_a_refusal_names_what_the_server_needs(method: str, options: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse({"method": method, "privacy.trust": "helpers", **options})
    assert str(refused.value) == f"{reason}; set privacy.trust=local"


def test_masks_between_pairs_of_clients_are_not_in_this_version() -> None:
    with pytest.raises(ConfigError, match=r"'privacy\.trust': not in this version; say helpers or local"):
        parse({"privacy.trust": "pairwise"})


TRUSTS = ("local", "helpers")

RECORD: dict[str, Scalar] = {"privacy__unit": "record", "privacy__epsilon": 50.0}


@pytest.mark.parametrize("method", ["fedavg", "fedrule", "fedga", "uniform"])
def test_noise_of_local_steps_is_the_same_in_sums_as_in_single_replies(method: str, tmp_path: Path) -> None:
    privacy = [SumFederation(tmp_path / t).run(summed(method, t, **RECORD)).privacy for t in TRUSTS]
    local, opened = (RunDirectory(tmp_path / t, "toy").load_model()[0] for t in TRUSTS)
    for name in local:
        np.testing.assert_allclose(opened[name], local[name], atol=1e-5)
    alone, summed_ = privacy
    assert (summed_.trust, summed_.sums) == ("helpers", {"opened": 3, "lost": 0})
    assert replace(summed_, trust="local", helpers={}, min_sum=alone.min_sum, sums=alone.sums) == alone


def test_releases_of_records_to_sums_are_charged_as_noise_of_the_client(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path), summed(**RECORD)
    federation.run(config)
    for session in federation.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        assert [(e.terms.mechanism, e.terms.trust) for e in entries] == [
            ("dp-sgd q=0.5 steps=3 releases=3", "local")
        ] * 4
