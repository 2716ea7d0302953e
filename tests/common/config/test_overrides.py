"""Assignments of `--set`."""

import pytest

from common.config.parse import parse, read_overrides
from common.errors import ConfigError
from common.options import Scalar


@pytest.mark.parametrize(
    ("assignment", "pair"),
    [
        ("rounds=3", {"rounds": 3}),
        ("a.b=1.5", {"a.b": 1.5}),
        ("a=true", {"a": True}),
        ("method=fedavg", {"method": "fedavg"}),
        ('method="fedavg"', {"method": "fedavg"}),
        ("catalogue=/a/b=c.json", {"catalogue": "/a/b=c.json"}),
        (" rounds = 3", {"rounds": 3}),
        ("run-id=", {"run-id": ""}),
        ("a=-1e-3", {"a": -1e-3}),
    ],
)
def test_values_are_toml_scalars_or_text(assignment: str, pair: dict[str, Scalar]) -> None:
    assert read_overrides([assignment]) == pair


def test_the_last_assignment_of_a_key_is_used() -> None:
    assert read_overrides(["rounds=3", "rounds=4"]) == {"rounds": 4}


@pytest.mark.parametrize("assignment", ["rounds", "=3", " =3", ""])
def test_an_assignment_without_key_or_equals_sign_is_refused(assignment: str) -> None:
    with pytest.raises(
        ConfigError, match=r"--set .* is not an assignment; write key=value, for example algorithm\.fedrule\.lam=1\.0"
    ):
        read_overrides([assignment])


@pytest.mark.parametrize("assignment", ["rounds=[1, 2]", "federation={cohort = 0.5}x", "rounds=2024-01-01"])
def test_a_value_that_is_not_a_scalar_is_refused(assignment: str) -> None:
    with pytest.raises(ConfigError):
        parse(read_overrides([assignment]))
