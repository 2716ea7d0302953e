"""Runs under a formula that a user wrote: what is sent, what is refused, what the statement says."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from client.owner.policy import Policy
from client.state import MemoryStore
from common.config.parse import flatten, from_json, parse, to_json
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError
from common.options import Scalar
from common.privacy.claims import PROPERTIES
from common.tasks.traffic.options import FORMULA
from common.wire.messages import AssignReply, TrainRequest
from server.record.privacy_statement import statement
from server.run import run
from tests.support.sensors import Listening, heard, road_config, road_grid, rounds_of

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
