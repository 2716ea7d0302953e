"""Combinations that runs with gathered rows accept, and reasons of the others."""

import pytest

from common.config.parse import configure_alone, parse
from common.config.run import names_rows, resolve_rows
from common.options import Scalar
from common.tasks.sessions.vocabulary import Items
from tests.support.configurations import refusal
from tests.support.toys import CATALOGUE

SAMPLED: dict[str, Scalar] = {"task": "sessions", "method": "fedga", "tasks.sessions.loss": "sampled"}
NOISY: dict[str, Scalar] = {"privacy.unit": "client"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "fedrule"}, "fedrule moves all rows of a table in each step"),
        ({"method": "local"}, "local has a whole model on each client"),
        ({"method": "ditto"}, "ditto has a whole model on each client"),
        ({"method": "ifca"}, "ifca has a whole model on each client"),
        (
            {"method": "fedavg", "training.optimizer": "adam"},
            "Adam's persistent moments move rows that a round does not gather; set training.moments=reset",
        ),
        (
            {"method": "fedavg", "federation.robust": "median", "federation.min-replies": 3},
            "federation.robust=median would take rows that were not gathered for zeros",
        ),
        (
            {"method": "fedga", "federation.updates": "dense"},
            "federation.updates=dense sends whole tables, whose zeros name the same rows",
        ),
        (
            {"method": "fedavg", "model": "paper", "privacy.unit": "record"},
            "privacy.unit=record draws noise for all rows in each step",
        ),
    ],
)
def test_what_moves_or_needs_whole_tables_is_refused(options: dict[str, Scalar], reason: str) -> None:
    assert f"tasks.sessions.loss=sampled does not apply: {reason}" in refusal({**SAMPLED, **options})
    parse({"task": "sessions", **options})


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fedga", "fedadam", "fedyogi", "fedadagrad", "fedrep"])
def test_methods_that_move_gathered_rows_alone_are_accepted(method: str) -> None:
    assert names_rows(parse({**SAMPLED, "method": method}))


def test_rows_are_named_without_noise_and_masks_alone() -> None:
    assert not names_rows(parse({"task": "sessions", "method": "fedga"}))
    assert not names_rows(parse({**SAMPLED, **NOISY}))
    assert not names_rows(parse({**SAMPLED, "privacy.trust": "helpers"}))


def items(number: int) -> Items:
    return Items(items=tuple(f"item {k}" for k in range(number)))


def resolved(number: int = 2_000, **options: Scalar) -> str:
    flat = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    config = parse({"task": "sessions", "method": "fedga", "privacy.trust": "local", **flat})
    return str(resolve_rows(config, items(number)).task_options.model_dump()["loss"])


def test_many_items_are_sampled_by_default() -> None:
    assert (resolved(1_999), resolved(2_000)) == ("full", "sampled")
    assert resolved(1_999, tasks__sessions__loss="sampled") == "sampled"
    assert resolved(2_000, tasks__sessions__loss="full") == "full"


@pytest.mark.parametrize(
    "options",
    [
        {"privacy__unit": "client"},
        {"privacy__trust": "helpers"},
        {"method": "ditto"},
        {"method": "fedavg", "algorithm__fedavg__optimizer": "adam"},
        {"method": "fedavg", "federation__robust": "median", "federation__min_replies": 3},
        {"federation__updates": "dense"},
    ],
)
def test_runs_that_cannot_name_rows_keep_all_items(options: dict[str, Scalar]) -> None:
    assert resolved(**options) == "full"


def test_other_tasks_have_nothing_to_resolve() -> None:
    config = parse({"task": "rules", "method": "fedavg"})
    assert resolve_rows(config, CATALOGUE) is config


def test_each_client_alone_trains_on_all_items() -> None:
    alone = configure_alone(parse({**SAMPLED, "tasks.sessions.hidden": 8}), 3)
    assert (alone.method, alone.task_options.gathers_rows) == ("local", "")
    assert alone.task_options.model_dump()["hidden"] == 8
