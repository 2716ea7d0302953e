"""Combinations of options that runs with rounded updates refuse."""

import pytest

from common.config.parse import parse
from common.config.run import find_obstacle
from common.options import Scalar
from tests.support.configurations import refusal


@pytest.mark.parametrize("encoding", ["float16", "int8"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy.unit": "client"}, "does not apply to runs with noise; set federation.encoding=float32"),
        ({"task": "ratings", "tasks.ratings.items": "paper"}, "does not apply to runs with named rows"),
        ({"privacy.trust": "helpers"}, "rounds the numbers of single replies; set privacy.trust=local"),
    ],
)
def test_noise_named_rows_and_masks_are_refused(encoding: str, options: dict[str, Scalar], reason: str) -> None:
    assert f"federation.encoding={encoding} {reason}" in refusal({**options, "federation.encoding": encoding})


def test_other_runs_are_accepted_and_take_no_helpers_that_are_online() -> None:
    config = parse({"federation.encoding": "int8"})
    assert "federation.encoding=int8" in find_obstacle(config)
    assert not find_obstacle(parse({}))


def test_an_unheard_of_encoding_is_refused() -> None:
    assert "'float32', 'float16' or 'int8'" in refusal({"federation.encoding": "int4"})
