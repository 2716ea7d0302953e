"""Schema of metrics.jsonl and result.json, as other programs read it, and lines of the ServerApp's log."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError
from server.record.events import Finish, RoundEvent, Start, Waiting, event_from_line, event_text, event_to_line
from server.record.result import Best, ClientResult, Privacy, Result, result_from_json, result_to_json

RESULT = Result(
    run="r1",
    method="fedrule",
    task="rules",
    model="default",
    seed=0,
    rounds=30,
    rounds_done=29,
    status="completed",
    metrics={"auc": 0.98},
    best=Best(round=21, metrics={"auc": 0.99}),
    clients={"client-1": ClientResult(examples=12, metrics={"auc": 0.97})},
    seconds=12.5,
    bytes_down=100,
    bytes_up=90,
    privacy=Privacy(unit="none", mechanism="none", epsilon_spent_max=None, delta=None, uncovered=["everything"]),
    model_sha256="ab",
    versions={"flwr": "1.39.0"},
)


def test_a_finish_line() -> None:
    line = event_to_line(Finish(status="failed", reason="too few", time=1.0))
    assert json.loads(line) == {"event": "finish", "time": 1.0, "status": "failed", "reason": "too few"}
    assert line.endswith(b"}\n")


def test_the_time_is_that_of_creation() -> None:
    assert Finish(status="completed").time > 1.7e9


def test_a_later_release_may_add_fields() -> None:
    event = event_from_line('{"event":"finish","time":1.0,"status":"completed","mood":"good"}')
    assert event == Finish(status="completed", time=1.0)


@pytest.mark.parametrize("line", ['{"event":"round","ro', '{"event":"party"}', "[]", ""])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(DataError, match="not a run event"):
        event_from_line(line)


def test_result_round_trip() -> None:
    assert result_from_json(result_to_json(RESULT)) == RESULT
    assert result_from_json(result_to_json(replace(RESULT, best=None))).best is None


def test_a_result_has_the_documented_keys_and_is_strict_json() -> None:
    document = json.loads(result_to_json(replace(RESULT, metrics={"loss": math.nan})))
    assert document["metrics"] == {"loss": None}
    assert set(document) == {
        *("run", "method", "task", "model", "seed", "rounds", "rounds_done", "status", "reason", "metrics", "best"),
        *("clients", "seconds", "bytes_down", "bytes_up", "privacy", "model_sha256", "versions", "verdict"),
        *("floor_metric", "floor_value", "local", "error", "replaces", "state", "summed", "device", "spread"),
        "parent",
    }
    promised = ("unit", "mechanism", "epsilon_spent_max", "delta", "uncovered", "epsilon", "neighbours", "account")
    assert set(document["privacy"]) == {*promised, "guarantee", "trust", "helpers", "min_sum", "sums", "weights"}


def test_an_invalid_result_names_the_field() -> None:
    with pytest.raises(DataError, match=r"clients\.client-1\.examples"):
        result_from_json(result_to_json(RESULT).replace(b'"examples": 12', b'"examples": "many"'))


ROUND = RoundEvent(
    round=2, rounds=3, loss=0.5, metrics={"auc": 0.75}, seconds=1.25, answered=1, asked=2, bytes_down=1, bytes_up=1
)


def test_each_event_is_one_line() -> None:
    folder = Path("/runs/r1")
    start = Start(run="r1", method="fedavg", task="rules", model="default", seed=7, rounds=3)
    assert event_text(start, folder) == "run r1: fedavg on rules, 3 rounds, seed 7"
    assert event_text(replace(start, remark="few homes"), folder).endswith(", seed 7; few homes")
    assert event_text(ROUND, folder) == "round 2/3: 1/2 clients, 1.2 s, train loss 0.500, auc 0.750"
    assert event_text(Finish(status="completed"), folder) == "run completed; result in /runs/r1/result.json"
    failed = Finish(status="failed", reason="no clients")
    assert event_text(failed, folder) == "run failed: no clients; result in /runs/r1/result.json"
    assert event_text(Waiting(wanted=2, until=0.0), folder) == ""
