"""Runs that secure sums do not allow, with the reason."""

from typing import Any

import pytest

from common.config.parse import parse
from common.errors import ConfigError
from common.options import Scalar
from tests.support.sum_runs import summed


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
