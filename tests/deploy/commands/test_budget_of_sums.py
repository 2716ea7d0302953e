"""`fedloom budget` for ledgers with releases to secure sums."""

from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from client.data.dataset import fingerprint
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import open_ledger
from common.privacy.accounts import Zcdp
from common.privacy.claims import UNBOUNDED
from common.privacy.mechanisms import Gaussian
from common.secure.noise import DiscreteGaussian
from deploy.cli.app import app


def test_trust_of_runs_with_secure_sums(tmp_path: Path) -> None:
    ledger = open_ledger("demo:0-3", tmp_path, fingerprint("demo:0-3", (0, 1), 0), "client", Zcdp(), UNBOUNDED, 1e-5)
    ledger.release(Slot("one", 1), ledger.terms(Gaussian(0.25, 1.0)), lambda: b"noise")
    summed = replace(ledger.terms(DiscreteGaussian(1024, "signed", 4096)), trust=f"helpers:{'a' * 16}")
    ledger.release(Slot("two", 1), summed, lambda: b"masked")
    ledger.close()
    text = CliRunner().invoke(app, ["budget", "--state", str(tmp_path)], catch_exceptions=False).stdout
    assert "run one: 0.25 in 1 release, trust local\n" in text
    assert f"run two: 0.125 in 1 release, trust helpers:{'a' * 16}\n" in text
    assert "discrete-gaussian-sum, gaussian" in text
    assert "if in each run at least one of its helpers" in text
    assert "holds without trust in a helper" in text
