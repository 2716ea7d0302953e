"""Every model of every task is exported to ONNX and computes the same, or is refused with a remedy."""

from dataclasses import replace

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import ConfigError
from common.options import Scalar
from common.tasks.ratings import neighbours
from deploy.serving.onnx_export import to_onnx
from deploy.serving.spec import Export, Serving
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.spec import TrainedRun
from tests.support.exports import ALL, describe, untrained


def attempt(serving: Serving, run: TrainedRun) -> tuple[str, Export | None]:
    """Return the export without data, or the refusal."""
    try:
        return "", serving.export(run, None)
    except ConfigError as refused:
        return str(refused), None


@pytest.mark.system
@pytest.mark.parametrize("noised", [False, True])
def test_the_closed_form_of_ratings_computes_the_same(noised: bool) -> None:
    run, rng = untrained({"task": "ratings", "method": "ridge"}), np.random.default_rng(0)
    size, solved = len(run.vocabulary.items), neighbours.sizes(run.vocabulary, noised)
    sums: Arrays = {neighbours.REPORT: rng.normal(size=(size, 1))}
    if not noised:
        residuals, counts = rng.normal(0, 0.3, (200, size)), np.full((size, 1), 200.0)
        solved = neighbours.solve(solved, {neighbours.ITEM_SUMS: np.hstack([residuals.sum(0)[:, None], counts])}, 0.0)
        pairs = (residuals.T @ residuals)[np.tril_indices(size)][:, None]
        sums = {neighbours.PAIR_SUMS: np.hstack([pairs, np.full_like(pairs, 200)])}
    run = replace(run, model=neighbours.solve(solved, sums, 0.0))
    ref = DEPLOY_TASKS["ratings"].serving
    assert ref is not None
    assert to_onnx(ref.load().export(run, None).network, {"run": "r1"})


@pytest.mark.system
@pytest.mark.parametrize("options", ALL, ids=describe)
def test_a_model_exports_and_computes_the_same_or_is_refused_with_a_remedy(options: dict[str, Scalar]) -> None:
    run = untrained(options)
    ref = DEPLOY_TASKS[run.config.task].serving
    assert ref is not None
    serving = ref.load()
    refusal, export = attempt(serving, run)
    if export is None:
        assert "r1" in refusal
        assert "--data FILE" in refusal
        whole = run.read("")
        export = serving.export(run, replace(whole, units=whole.units[:1]))
    assert to_onnx(export.network, {"run": "r1"})  # compares 20 inputs of three sizes with torch
