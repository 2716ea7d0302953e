"""Runs that start from a finished run: sums and models go on, names grow, misfits are refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.tasks.rules.data.homes import Device, Home, Homes
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, StateError
from common.options import Scalar
from common.tasks.rules import ease
from common.tasks.rules.vocabulary import RuleCatalogue
from deploy.federation.runs import stored_options
from deploy.simulation.grid import simulate
from server.record.events import Start
from server.record.folder import RunDirectory
from server.record.journal import restore
from server.record.privacy_statement import with_parent
from server.record.result import Parent, Privacy, Result
from server.record.withdrawal import ancestry, took_part, withdraw
from server.round.state import SUMS, RunState
from tests.support.kills import killed_at
from tests.support.toys import CATALOGUE, configured, toy_homes

HOMES = toy_homes(16)


def named(
    folder: Path,
    run: str,
    method: str = "ridge",
    parent: str = "",
    catalogue: RuleCatalogue = CATALOGUE,
    **options: Scalar,
) -> RunConfig:
    """Return the configuration of a run whose vocabulary is written to the folder."""
    path = folder / f"{run}.json"
    path.write_text(catalogue.to_json(), "utf-8")
    chosen = {"strength": 1.0} if method == "ridge" else {"rounds": 2}
    config = configured(method, **{**chosen, **options}, catalogue=str(path))
    return config.model_copy(update={"run_id": run, "start_from": parent})


def state(folder: Path, run: str) -> RunState:
    checkpoint = RunDirectory(folder, run).checkpoints.load_latest()
    assert checkpoint is not None
    return restore(checkpoint)


def train(
    folder: Path, config: RunConfig, homes: tuple[Home, ...] = HOMES, catalogue: RuleCatalogue = CATALOGUE
) -> Result:
    return simulate(config, Homes(homes, catalogue), folder)


def pairs(folder: Path, run: str) -> dict[tuple[int, ...], float]:
    """Return names of a pair of triples -> its sum."""
    sums = state(folder, run).memory[SUMS]
    rows = zip(sums[f"{ease.GRAM}/names"].tolist(), sums[f"{ease.GRAM}/values"].tolist(), strict=True)
    return {tuple(names): value for names, [value] in rows}


def test_a_chain_of_sums_equals_one_run_over_all_clients(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "whole"))
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    result = train(tmp_path, named(tmp_path, "second", parent="first"), HOMES[7:])
    whole, chained = pairs(tmp_path, "whole"), pairs(tmp_path, "second")
    assert whole.keys() == chained.keys()
    assert max(abs(whole[key] - chained[key]) for key in whole) < 1e-9
    expected, found = state(tmp_path, "whole").statics, state(tmp_path, "second").statics
    np.testing.assert_array_equal(found[ease.TRIPLES], expected[ease.TRIPLES])
    np.testing.assert_allclose(found[ease.VALUES], expected[ease.VALUES], atol=1e-6)
    assert result.parent is not None
    assert (result.parent.run, result.parent.weight) == ("first", 1.0)
    first = RunDirectory(tmp_path, "first").result()
    assert first is not None
    assert result.parent.model_sha256 == first.model_sha256
    channel = "run first, from which this one started: its model holds what its clients sent, without noise"
    assert result.privacy.uncovered[-1] == channel


def test_the_statement_adds_up_guarantees_with_noise() -> None:
    private = Privacy(unit="client", mechanism="", epsilon_spent_max=1.0, delta=1e-5)
    parent = Parent(run="first", model_sha256="", days=0, unit="client")
    [channel] = with_parent(private, parent).uncovered
    assert channel.endswith(
        "under the statement of that run; for clients of both runs the guarantees add up, and each client's ledger counts both"
    )
    [channel] = with_parent(private, replace(parent, unit="none")).uncovered
    assert channel.endswith("what its clients sent, without noise")


def test_clients_that_seem_to_send_the_same_data_again_are_named(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    train(tmp_path, named(tmp_path, "second", parent="first"), HOMES[:7])
    [start] = [event for event in RunDirectory(tmp_path, "second").events() if isinstance(event, Start)]
    assert start.remark.startswith(
        "7 clients have the name and the number of records of a client of run first; data that are"
    )


GROWN = RuleCatalogue(
    entities=(*CATALOGUE.entities, "Siren"), relations=(*CATALOGUE.relations, "opens → sound"), opposites=()
)


def grown_homes() -> tuple[Home, ...]:
    """Return homes in which a door sounds a siren."""
    homes = []
    for home in HOMES[7:]:
        devices = (*home.devices, Device("door", 0), Device("siren", 3))
        rule = [[len(devices) - 2, len(devices) - 1, 4]]
        homes.append(replace(home, devices=devices, rules=np.concatenate([home.rules, rule])))
    return tuple(homes)


def test_sums_follow_their_names_into_a_larger_vocabulary(tmp_path: Path) -> None:
    merged = CATALOGUE.extended(GROWN)
    given = RuleCatalogue(entities=("Siren", "Door"), relations=("opens → sound",))
    assert CATALOGUE.extended(given) == merged
    train(tmp_path, named(tmp_path, "whole", catalogue=merged), (*HOMES[:7], *grown_homes()), merged)
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    train(tmp_path, named(tmp_path, "second", parent="first", catalogue=given), grown_homes(), merged)
    whole, chained = pairs(tmp_path, "whole"), pairs(tmp_path, "second")
    assert whole.keys() == chained.keys()
    assert max(abs(whole[key] - chained[key]) for key in whole) < 1e-9
    assert any(3 in names[1::3] for names in whole), "the siren is among them"
    assert state(tmp_path, "second").statics[ease.SIZES][:2].tolist() == [4, 5]
    assert RunDirectory(tmp_path, "second").catalogue() == RunDirectory(tmp_path, "whole").catalogue()


def test_earlier_sums_lose_half_of_their_weight_in_a_half_life(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    folder = RunDirectory(tmp_path, "first")
    events = folder.path / "metrics.jsonl"
    lines = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    old = [{**line, "time": line["time"] - 20 * 86_400} for line in lines]
    events.write_text("".join(f"{json.dumps(line)}\n" for line in old), "utf-8")
    config = named(tmp_path, "second", parent="first").model_copy(update={"half_life": 10.0})
    result = train(tmp_path, config, HOMES[7:])
    assert result.parent is not None
    assert (result.parent.days, result.parent.weight) == (pytest.approx(20, abs=0.01), pytest.approx(0.25, abs=1e-4))
    train(tmp_path, named(tmp_path, "others"), HOMES[7:])
    before, after, new = (pairs(tmp_path, run) for run in ("first", "second", "others"))
    for key, value in after.items():
        expected = result.parent.weight * before.get(key, 0) + new.get(key, 0)
        assert value == pytest.approx(expected, abs=1e-9), key


def test_triples_that_have_lost_their_weight_are_no_candidates(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    config = named(tmp_path, "second", parent="first").model_copy(update={"half_life": 1e-12})
    train(tmp_path, config, HOMES[7:9])
    train(tmp_path, named(tmp_path, "two"), HOMES[7:9])
    expected, found = state(tmp_path, "two").statics, state(tmp_path, "second").statics
    np.testing.assert_array_equal(found[ease.TRIPLES], expected[ease.TRIPLES])


@pytest.mark.parametrize("method", ["fedavg", "ifca", "fedrep"])
def test_networks_start_from_the_model_with_rows_for_new_names(tmp_path: Path, method: str) -> None:
    options: dict[str, Scalar] = {"clusters": 2, "spread": 0.1} if method == "ifca" else {}
    train(tmp_path, named(tmp_path, "first", method, **options), HOMES[:7])
    merged = CATALOGUE.extended(GROWN)
    config = named(tmp_path, "second", method, "first", merged, **options, rounds=1)
    first = state(tmp_path, "first").model
    train(tmp_path, config.model_copy(update={"start_from": "", "run_id": "fresh"}), grown_homes(), merged)
    result = train(tmp_path, config, grown_homes(), merged)
    start, fresh = (RunDirectory(tmp_path, run).checkpoints.load(0).groups["model"] for run in ("second", "fresh"))
    assert start.keys() == first.keys()
    for name, a in start.items():
        inside = tuple(map(slice, first[name].shape))
        np.testing.assert_array_equal(a[inside], first[name], err_msg=name)
        is_new = np.ones(a.shape, bool)
        is_new[inside] = False
        np.testing.assert_array_equal(a[is_new], fresh[name][is_new], err_msg=name)
    assert sum(a.size for a in start.values()) > sum(a.size for a in first.values())
    assert result.status == "completed"


def test_a_run_starts_from_the_delivered_round(tmp_path: Path) -> None:
    options: dict[str, Scalar] = {"rounds": 4, "tasks__rules__validation-share": 0.3, "lr": 0.5}
    train(tmp_path, named(tmp_path, "first", "fedavg", **options))
    folder = RunDirectory(tmp_path, "first")
    best, _ = folder.load_model("model-best.safetensors")
    train(tmp_path, named(tmp_path, "second", "fedavg", "first", **{**options, "rounds": 1}))
    start = RunDirectory(tmp_path, "second").checkpoints.load(0).groups["model"]
    for name, a in start.items():
        np.testing.assert_array_equal(a, best[name], err_msg=name)


def test_what_no_run_starts_from_is_refused_with_the_remedy(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "sums"), HOMES[:7])
    train(tmp_path, named(tmp_path, "net", "fedavg"), HOMES[:7])
    wider = named(tmp_path, "x", "fedavg", "net", tasks__rules__hidden=8)
    refused = {
        r"no run 'absent' in .*; newest runs: ": named(tmp_path, "x", parent="absent"),
        "run 'sums' has sums \\(method ridge\\), .* set --method ridge": named(tmp_path, "x", "fedavg", "sums"),
        "run 'net' has a trained model \\(method fedavg\\), .* set --method fedavg": named(tmp_path, "x", parent="net"),
        "run 'net' has task=rules, this run task=sessions; set task=rules": wider.model_copy(
            update={"task": "sessions"}
        ),
        "run 'net' has model=default, this run model=paper": wider.model_copy(update={"model": "paper"}),
        r"run 'net' has another model: encoder\.first\.lin_rel\.weight is 4 × 3, in this run 8 × 3; .*--config": wider,
    }
    for reason, config in refused.items():
        with pytest.raises(ConfigError, match=reason):
            train(tmp_path, config)
        assert not (tmp_path / "x" / "config.toml").exists()


def test_an_unfinished_or_altered_run_is_refused(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    folder, config = RunDirectory(tmp_path, "first"), named(tmp_path, "second", parent="first")
    result = folder.result()
    assert result is not None
    folder.write_result(replace(result, model_sha256="0" * 64))
    with pytest.raises(StateError, match=r"the model of run 'first' .* is not that of its result \(0000000000000000\)"):
        train(tmp_path, config)
    folder.write_result(replace(result, status="failed", error="QuorumError"))
    with pytest.raises(ConfigError, match=r"run 'first' failed \(QuorumError\), .*--resume first"):
        train(tmp_path, config)
    (folder.path / "result.json").unlink()
    with pytest.raises(
        ConfigError, match="run 'first' is not finished, so no run starts from it; continue it with --resume"
    ):
        train(tmp_path, config)


@pytest.mark.parametrize("method", ["ridge", "fedavg"])
def test_a_started_run_that_is_killed_resumes_without_its_parent(tmp_path: Path, method: str) -> None:
    train(tmp_path, named(tmp_path, "first", method), HOMES[:7])
    config = named(tmp_path, "second", method, "first")
    with killed_at() as steps:
        through = train(tmp_path, config, HOMES[7:])
    (tmp_path / "second").rename(tmp_path / "through")
    rounds = [k for k, name in enumerate(steps.names, start=1) if name == "push_messages"]
    for last in (rounds[1], rounds[-2]):
        with killed_at(last):
            train(tmp_path, config, HOMES[7:])
        (tmp_path / "first").rename(tmp_path / "away")
        resumed = train(tmp_path, config.model_copy(update={"resume": True}), HOMES[7:])
        (tmp_path / "away").rename(tmp_path / "first")
        assert (resumed.model_sha256, resumed.parent) == (
            through.model_sha256,
            replace(through.parent, days=resumed.parent.days),
        )
        shutil.rmtree(tmp_path / "second")


def test_a_forgotten_client_leaves_the_runs_that_started_from_its_own(tmp_path: Path) -> None:
    left_out = "client-5"
    others = (*HOMES[:5], HOMES[6])
    train(tmp_path, named(tmp_path, "without"), others)
    train(tmp_path, named(tmp_path, "expected", parent="without"), HOMES[7:10])
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    train(tmp_path, named(tmp_path, "second", parent="first"), HOMES[7:10])
    second = RunDirectory(tmp_path, "second")
    assert took_part(second, left_out), "by the run from which it started"
    assert [folder.path.name for folder in ancestry(second)] == ["second", "first"]
    for run in ("first", "second"):
        folder = RunDirectory(tmp_path, run)
        withdraw(folder, parse({**stored_options(folder), "resume": False}), left_out, keeps_rounds=True)
    config = parse({**stored_options(RunDirectory(tmp_path, "second.2")), "resume": True})
    assert config.start_from == "first.2"
    with pytest.raises(ConfigError, match=r"run 'first\.2' is not finished, .* --resume first\.2"):
        train(tmp_path, config, HOMES[7:10])
    train(tmp_path, parse({**stored_options(RunDirectory(tmp_path, "first.2")), "resume": True}), HOMES[:7])
    train(tmp_path, config, HOMES[7:10])
    expected, found = pairs(tmp_path, "expected"), pairs(tmp_path, "second.2")
    assert expected.keys() == found.keys()
    assert max(abs(expected[key] - found[key]) for key in expected) < 1e-9


def test_a_run_whose_parent_is_gone_for_good_is_made_again_by_itself(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "first"), HOMES[:2])
    train(tmp_path, named(tmp_path, "second", parent="first").model_copy(update={"half_life": 9.0}), HOMES[7:10])
    second = RunDirectory(tmp_path, "second")
    shutil.rmtree(tmp_path / "first")
    withdraw(second, parse({**stored_options(second), "resume": False}), "client-2", keeps_rounds=True)
    config = parse(stored_options(RunDirectory(tmp_path, "second.2")))
    assert (config.start_from, config.half_life) == ("", 0.0)
