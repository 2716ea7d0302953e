"""A federation behind a gateway ends as the same clients on nodes of their own."""

from pathlib import Path

import numpy as np
import pytest

from common.arrays import norm
from common.options import Scalar
from server.run import run
from tests.contracts.test_hubs import run_flat
from tests.support.gateways import NAME, behind, gateway_of
from tests.support.hubs import settings
from tests.support.owners import model_of, owners
from tests.support.sensors import rounds_of

METHODS: list[tuple[str, dict[str, Scalar]]] = [
    ("fedrule", {}),
    ("fedga", {}),
    ("ifca", {"clusters": 2}),
    ("ditto", {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_single_replies_through_a_gateway_end_in_the_bits_of_single_nodes(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, method, federation__answer="replies", **options)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    passed = run(behind(gateway_of(owners(5))), config, tmp_path / "gateway")
    assert passed.model_sha256 == flat.model_sha256
    assert passed.metrics == flat.metrics
    assert [*passed.clients] == [f"{NAME}/{name}" for name in flat.clients]
    both = zip(rounds_of(tmp_path / "gateway"), rounds_of(tmp_path / "flat"), strict=True)
    assert all((h.asked, h.answered, h.loss) == (f.asked, f.answered, f.loss) for h, f in both)


@pytest.mark.parametrize("method", ["fedrule", "fedavg", "fedga", "ditto", "fedyogi"])
def test_sums_of_a_gateway_train_the_model_of_single_nodes(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, method)
    run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    run(behind(gateway_of(owners(5), together=2)), config, tmp_path / "gateway")
    passed, flat = model_of(tmp_path / "gateway"), model_of(tmp_path / "flat")
    assert norm(passed) == pytest.approx(norm(flat), rel=1e-6)
    for name, a in flat.items():
        np.testing.assert_allclose(passed[name], a, rtol=1e-4, atol=1e-5)
