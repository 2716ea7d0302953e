"""The stricter of policy file and command line applies; impossible limits are refused."""

import math
from pathlib import Path
from typing import Any

import pytest

from client.owner.policy import Policy, read_policy
from client.settings import ClientSettings
from common.errors import ConfigError
from deploy.federation.client import narrowed, store_limits


@pytest.mark.parametrize(
    ("file", "epsilon", "delta", "limits"),
    [
        ({}, 10.0, None, (10.0, 1e-5)),
        ({}, 10.0, 1e-4, (10.0, 1e-4)),
        ({"max_epsilon": 3.0}, 10.0, 1e-4, (3.0, 1e-4)),
        ({"max_epsilon": 30.0, "delta": 1e-6}, 10.0, 1e-4, (10.0, 1e-6)),
        ({"delta": 1e-4}, 10.0, 1e-6, (10.0, 1e-6)),
        ({"delta": 1e-4}, 10.0, None, (10.0, 1e-4)),
        ({"require_noise": False}, 10.0, None, (10.0, 1e-5)),
    ],
)
def test_the_smaller_limit_applies_and_noise_is_required(
    file: dict[str, Any], epsilon: float, delta: float | None, limits: tuple[float, float]
) -> None:
    policy = narrowed(Policy(**file), epsilon=epsilon, delta=delta)
    assert (policy.max_epsilon, policy.delta) == limits
    assert policy.require_noise


def test_only_methods_that_both_name_are_allowed() -> None:
    assert narrowed(Policy(), ["fedrule", "fedavg"]).methods == ("fedavg", "fedrule")
    assert narrowed(Policy(methods=("fedavg", "fedrep")), ["fedrule", "fedavg"]).methods == ("fedavg",)
    assert not narrowed(Policy(), ["fedavg"]).require_noise


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"methods": ["fedagv"]}, "--method: unknown 'fedagv'; did you mean 'fedavg'?"),
        ({"methods": ["fedavg"]}, "the policy file allows fedrule only; remove --method fedavg, or change the file"),
        ({"epsilon": 0.0}, "--epsilon 0 is out of range"),
        ({"epsilon": math.nan}, "--epsilon nan is out of range"),
        ({"epsilon": math.inf}, "--epsilon inf is out of range"),
        ({"delta": 1e-5}, "--delta needs --epsilon; give both"),
        ({"epsilon": 1.0, "delta": 1.0}, "--delta 1 is out of range; give a probability between 0 and 1"),
    ],
)
def test_impossible_limits_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        narrowed(Policy(methods=("fedrule",)), **options)
    assert str(refused.value).startswith(reason)


def test_the_client_reads_the_limits_of_both(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('units = ["client"]\nmax-local-steps = 2\n')
    settings = ClientSettings(data="my.csv", name="ann", state_dir=tmp_path / "state", policy=file)
    policy = read_policy(store_limits(settings, ["fedavg"], 2.0, None))
    assert policy == narrowed(read_policy(file), ["fedavg"], 2.0)
    assert (policy.units, policy.max_local_steps, policy.max_epsilon) == (("client",), 2, 2.0)
    assert policy.max_epsilon_per_round == math.inf
