"""Runs under unit `record` whose server learns sums alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.options import Scalar
from server.record.folder import RunDirectory
from tests.support.sum_runs import SumFederation, summed

TRUSTS = ("local", "helpers")
RECORD: dict[str, Scalar] = {"privacy__unit": "record", "privacy__epsilon": 50.0}


@pytest.mark.parametrize("method", ["fedavg", "fedrule", "fedga", "uniform"])
def test_noise_of_local_steps_is_the_same_in_sums_as_in_single_replies(method: str, tmp_path: Path) -> None:
    privacy = [SumFederation(tmp_path / t).run(summed(method, t, **RECORD)).privacy for t in TRUSTS]
    local, opened = (RunDirectory(tmp_path / t, "toy").load_model()[0] for t in TRUSTS)
    for name in local:
        np.testing.assert_allclose(opened[name], local[name], atol=1e-5)
    alone, summed_ = privacy
    assert (summed_.trust, summed_.sums) == ("helpers", {"opened": 3, "lost": 0})
    assert replace(summed_, trust="local", helpers={}, min_sum=alone.min_sum, sums=alone.sums) == alone


def test_releases_of_records_to_sums_are_charged_as_noise_of_the_client(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path), summed(**RECORD)
    federation.run(config)
    for session in federation.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        assert [(e.terms.mechanism, e.terms.trust) for e in entries] == [
            ("dp-sgd q=0.5 steps=3 releases=3", "local")
        ] * 4
