"""Runs under a formula that a user wrote: what is sent, what is refused, what the statement says."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.state import MemoryStore
from common.config.parse import flatten, from_json, parse, to_json
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError
from common.options import Scalar
from common.privacy.claims import PROPERTIES
from common.tasks.traffic.options import FORMULA, MINED
from common.tasks.traffic.properties import STRUCTURE, pool_parameters
from common.wire.messages import CLUSTER, AssignReply, TrainRequest
from deploy.tasks.traffic.words import describe_clusters
from server.record.folder import RunDirectory
from server.record.privacy_statement import statement
from server.run import run
from tests.support.build import task_model
from tests.support.sensors import MEASURES, Listening, heard, road_config, road_grid, rounds_of

TEXT = "G[0,1] (volume <= 900) & F[0,2] (volume >= 300)"


def formula_config(method: str = "fedstl", **options: Scalar) -> RunConfig:
    chosen: dict[str, Scalar] = {"tasks__traffic__property": "formula", "tasks__traffic__formula": TEXT}
    return road_config(method, **{**chosen, "model": "paper", "spread": 0.5, **options})


def test_fedstl_clusters_by_the_formula_and_no_property_is_sent(tmp_path: Path) -> None:
    grid = road_grid([MemoryStore() for _ in range(3)], Listening)
    done = run(grid, formula_config(), tmp_path)
    replies = [reply for _, reply in heard(grid, AssignReply)]
    assert replies
    assert all(reply.property == {} and len(set(reply.losses.values())) > 1 for reply in replies)
    assert all(request.shared == {} for _, request in heard(grid, TrainRequest))
    assert done.metrics["teacher_rho_trace"] == 1.0
    assert rounds_of(tmp_path)[-1].clusters.keys() == {"client-0", "client-1", "client-2"}


def test_noise_covers_the_scores_under_a_formula(tmp_path: Path) -> None:
    grid = road_grid([MemoryStore() for _ in range(3)], Listening)
    config = formula_config(privacy__unit="client", privacy__epsilon=50.0)
    run(grid, config, tmp_path)
    replies = [reply for _, reply in heard(grid, AssignReply)]
    assert replies
    assert all(reply.property == {} for reply in replies)


def test_the_statement_says_that_the_formula_is_public() -> None:
    assert FORMULA in statement(formula_config(), {}, 0).uncovered
    assert PROPERTIES not in statement(formula_config(), {}, 0).uncovered
    assert FORMULA not in statement(road_config("fedstl"), {}, 0).uncovered


@pytest.mark.parametrize(("bound", "is_strict"), [(2_000, True), (100, True), (100, False)])
def test_an_owner_reads_of_a_formula_that_the_past_violates_and_may_refuse_it(
    bound: int, is_strict: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = road_grid([MemoryStore() for _ in range(2)], Listening, Policy(strict_property=is_strict))
    config = formula_config(rounds=1, tasks__traffic__formula=f"G[0,1] (volume <= {bound})")
    refused = pytest.raises(QuorumError, match="strict-property") if bound == 100 and is_strict else nullcontext()
    with refused:
        run(grid, config, tmp_path)
    remarks = [record.message for record in caplog.records if "past days satisfy the formula" in record.message]
    assert len(remarks) == (2 if bound == 100 else 0)


def test_the_text_survives_the_configuration() -> None:
    config = formula_config()
    assert from_json(to_json(config)) == config
    assert flatten(config)["tasks.traffic.formula"] == TEXT


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"property": "formula"}, "set both or none"),
        ({"formula": TEXT}, "set both or none"),
        ({"property": "formula", "formula": "G[0,1] volume"}, "column 14: expected <=, >=, < or >, found 'end'"),
        ({"property": "formula", "formula": "G[0,30] (volume <= 1)"}, "has 31 steps"),
        ({"property": "formula", "formula": "volume < 1 & volume > 1"}, "column 14: no trace can satisfy"),
    ],
)
def test_a_faulty_formula_is_refused_with_the_options(options: dict[str, str], problem: str) -> None:
    keys = {f"tasks.traffic.{key}": value for key, value in options.items()}
    with pytest.raises(ConfigError, match=problem):
        parse({"task": "traffic", "method": "fedavg", **keys})


def test_an_unknown_variable_stops_the_run_before_a_client_trains(tmp_path: Path) -> None:
    grid = road_grid([MemoryStore()], Listening)
    with pytest.raises(ConfigError, match="the federation measures volume; the formula names 'flow'"):
        run(grid, formula_config(tasks__traffic__formula="G[0,1] (flow <= 900)"), tmp_path)
    assert grid.asked == []


def template_config(kind: str, method: str = "fedstl", **options: Scalar) -> RunConfig:
    chosen: dict[str, Scalar] = {"model": "paper", "tasks__traffic__property": kind, "tasks__traffic__window_width": 1}
    extra: dict[str, Scalar] = {"spread": 0.5, "clusters": 2} if method == "fedstl" else {}
    return road_config(method, **{**chosen, **extra, **options})


def federation(config: RunConfig, folder: Path) -> Listening:
    grid = road_grid([MemoryStore() for _ in range(3)], Listening)
    run(grid, config, folder)
    return grid


@pytest.mark.parametrize("kind", ["existence", "until", "implication", "eventualities", "mined"])
def test_clusters_train_under_the_pooled_parameters_of_their_members(kind: str, tmp_path: Path) -> None:
    grid = federation(template_config(kind), tmp_path)
    sent = {name: reply.property for name, reply in heard(grid, AssignReply) if reply.property}
    assert sent.keys() == {"client-0", "client-1", "client-2"}
    assert all(set(STRUCTURE) < arrays.keys() for arrays in sent.values())
    shared = [(name, request.shared) for name, request in heard(grid, TrainRequest) if request.phase == CLUSTER]
    assert shared
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    clusters = {name: int(j) for name, j in checkpoint.groups["cluster"].items()}
    for name, phi in shared[-3:]:
        expected = pool_parameters([sent[member] for member, j in clusters.items() if j == clusters[name]])
        assert phi.keys() == expected.keys()
        for key, values in expected.items():
            np.testing.assert_array_equal(phi[key], values)
    words = describe_clusters(checkpoint)
    assert words.keys() == {str(j) for j in clusters.values()}
    assert all(text.startswith("template ") for text in words.values())


def test_other_methods_send_no_property(tmp_path: Path) -> None:
    grid = federation(template_config("mined", "fedavg"), tmp_path)
    assert not heard(grid, AssignReply)
    assert all(request.shared == {} for _, request in heard(grid, TrainRequest))


def test_noise_covers_parameters_and_the_structure_is_not_sent(tmp_path: Path) -> None:
    grid = federation(template_config("existence", privacy__unit="client", privacy__epsilon=50.0), tmp_path)
    replies = [reply.property for _, reply in heard(grid, AssignReply)]
    assert replies
    for arrays in replies:
        assert arrays.keys() == {"lower", "upper"}
        assert (arrays["lower"] <= arrays["upper"]).all()


@pytest.mark.parametrize("kind", ["mined", "implication"])
def test_a_form_that_depends_on_the_data_has_no_noise(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"property={kind} cannot have noise"):
        task_model(template_config(kind, privacy__unit="client"), MEASURES)
    task_model(template_config(kind, "fedavg", privacy__unit="client"), MEASURES)


def test_the_statement_names_parameters_and_mined_templates() -> None:
    assert {PROPERTIES, MINED} <= set(statement(template_config("mined"), {}, 0).uncovered)
    assert MINED not in statement(template_config("existence"), {}, 0).uncovered
