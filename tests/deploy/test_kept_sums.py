"""Sums that a population keeps in place of replies, and lengths that it doubts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.config.run import RunConfig
from common.contribution import Contribution, find_doubtful
from deploy.simulation import blocks as population
from deploy.simulation.grid import simulate
from server.aggregation.replies import Reply
from server.round import intake
from tests.support.toys import toy_dataset


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
