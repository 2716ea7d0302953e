"""`fedloom budget`: spent and remaining budget, runs, and coverage of the claim."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.data.dataset import fingerprint
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import open_ledger
from common.errors import ConfigError, DataError, LedgerError
from common.privacy.accounts import Pure, Rdp, Zcdp
from common.privacy.claims import BESIDE, UNBOUNDED, UNCOVERED
from common.privacy.mechanisms import DpSgd, Gaussian, Laplace
from common.secure.noise import DiscreteGaussian
from deploy.cli.app import app
from deploy.data.partitions import PARTITIONS, Partitioning
from tests.support.ledgers import ledger_of, spend_on


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return data with two runs under unit client and one under unit record."""
    path = tmp_path / "homes.csv"
    path.write_text("home,rule\n")
    words = (str(path), tmp_path / "state", fingerprint(str(path), (0, 1), 0))
    client = open_ledger(*words, "client", Zcdp(), 10.0, 1e-5)
    for run, number in (("one", 1), ("one", 2), ("two", 1)):
        client.release(Slot(run, number), client.terms(Gaussian(0.25, 1.0)), lambda: b"noise")
    client.charge(Slot("two", 2), client.terms(Laplace(1.0, 1.0)))
    record = open_ledger(*words, "record", Rdp(4), 10.0, 1e-5)
    record.release(Slot("three", 1), record.terms(DpSgd(2.0, 0.5, 3, 1.0)), lambda: b"noise")
    client.close()
    record.close()
    return path


def output(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["budget", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_ledgers_are_found_by_data_and_by_state_folder(data: Path, tmp_path: Path) -> None:
    by_data = output("--data", data, "--state", tmp_path / "state")
    assert by_data == output("--state", tmp_path / "state") == output("--data", data, "--state", tmp_path / "new")


def test_the_text_has_claim_coverage_and_runs(data: Path, tmp_path: Path) -> None:
    text = output("--data", data, "--state", tmp_path / "state")
    for part in (
        "unit client (replace-one), gaussian, laplace",
        "unit record (add-or-remove-one), dp-sgd q=0.5 steps=3",
        "guarantee: ε = 10, δ = 1e-05, for all requests together",
        "spent 1.25 of 1.7827 in zCDP (ρ), 0 remaining\n",
        "nothing more is released under unit client: a limit over all runs is of one unit",
        "does not cover noisy replies under unit record: they have a claim of their own, and the two add up",
        "to lower it, set a smaller max-epsilon in the policy; to raise it, fedloom budget --data DATA --raise-to EPS",
        "for planning only, no guarantee",
        "run one: 0.5 in 2 releases\n",
        "run two: 0.75 in 2 releases, 1 of them perhaps never sent",
        *(f"does not cover {channel}" for channel in UNCOVERED),
    ):
        assert part in text


def test_json_has_the_same_values(data: Path, tmp_path: Path) -> None:
    client, record = json.loads(output("--data", data, "--state", tmp_path / "state", "--json"))
    assert client["ledger"] == str(tmp_path / ".homes.csv.fedloom-ledger")
    terms = {"unit": "client", "neighbours": "replace-one", "mechanisms": ["gaussian", "laplace"], "account": "zcdp"}
    terms |= {"epsilon": 10.0, "delta": 1e-5, "limited": True, "spent": 1.25, "left": 0.0}
    assert {key: client[key] for key in terms} == terms
    run = {"run": "two", "releases": 2, "wasted": 1, "spent": 0.75, "trust": ["local"], "contracts": []}
    assert client["runs"][1] == run
    assert client["uncovered"] == [BESIDE.format(unit="record"), *UNCOVERED]
    assert (record["unit"], record["account"]) == ("record", "rdp-4")
    assert record["epsilon_so_far"] < 10


def test_an_unspent_budget_has_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path.with_name("no-runs")))  # the working directory may have runs
    (tmp_path / "new.csv").write_text("")
    assert output("--data", tmp_path / "new.csv", "--state", tmp_path) == "no privacy budget was spent here\n"
    assert json.loads(output("--state", tmp_path, "--json")) == []
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"], "the command writes no file"


def test_a_run_has_the_terms_of_its_releases(tmp_path: Path) -> None:
    ledger = open_ledger("demo:0-3", tmp_path, fingerprint("demo:0-3", (0, 1), 0), "client", Pure(), UNBOUNDED, 1e-5)
    for number, contract in ((1, "a" * 64), (2, "b" * 64)):
        terms = replace(ledger.terms(Laplace(0.5, 1.0)), contract=contract)
        ledger.release(Slot("run", number), terms, lambda: b"noise")
    text = output("--data", "demo:0-3", "--state", tmp_path)
    assert f"run run: 1 in 2 releases, terms {'a' * 16}, {'b' * 16}\n" in text


def test_without_a_limit_there_is_no_guarantee(tmp_path: Path) -> None:
    ledger = open_ledger("demo:0-3", tmp_path, fingerprint("demo:0-3", (0, 1), 0), "client", Pure(), UNBOUNDED, 1e-5)
    ledger.release(Slot("run", 1), ledger.terms(Laplace(0.5, 1.0)), lambda: b"noise")
    text = output("--data", "demo:0-3", "--state", tmp_path)
    assert "spent 0.5 in pure differential privacy (ε); no limit over all runs is set" in text
    assert "guarantee:" not in text


def test_missing_data_and_damaged_ledgers_are_reported(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        output("--data", tmp_path / "nowhere.csv")
    (tmp_path / ".homes.csv.fedloom-ledger").write_bytes(b"torn")
    with pytest.raises(LedgerError, match="fedloom-ledger"):
        output("--state", tmp_path / "state")


def test_an_older_copy_of_a_ledger_is_reported_and_its_limit_not_raised(data: Path, tmp_path: Path) -> None:
    ledger, state = tmp_path / ".homes.csv.fedloom-ledger", tmp_path / "state"
    older = ledger.read_bytes()
    output("--data", data, "--state", state, "--raise-to", 12)
    newest = ledger.read_bytes()
    ledger.write_bytes(older)
    for words in (("--data", data, "--state", state), ("--state", state)):
        result = CliRunner().invoke(app, ["budget", *map(str, words)])
        assert (result.exit_code, result.stdout) == (1, "")
        assert isinstance(result.exception, LedgerError)
        text = "it is an older copy, or another ledger; nothing was released; restore the newest copy"
        assert text in str(result.exception)
    with pytest.raises(LedgerError, match="older copy"):
        output("--data", data, "--state", state, "--raise-to", 14)
    ledger.write_bytes(newest)
    assert "guarantee: ε = 12" in output("--data", data, "--state", state)


def test_an_older_copy_is_found_by_the_state_of_a_client_of_up(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a raised limit of the older copy would invalidate the newest."""
    monkeypatch.chdir(tmp_path)
    ledger, state = tmp_path / ".homes.csv.fedloom-ledger", tmp_path / ".fedloom" / "up" / "run" / "client-0" / "state"
    older = ledger.read_bytes()
    spend_on(data, state)
    ledger.write_bytes(older)
    for more in ((), ("--raise-to", 12)):
        with pytest.raises(LedgerError, match="older copy"):
            output("--data", data, "--state", tmp_path / "new", *more)
    assert ledger.read_bytes() == older


def test_a_missing_ledger_is_reported_with_and_without_its_data(data: Path, tmp_path: Path) -> None:
    (tmp_path / ".homes.csv.fedloom-ledger").unlink()
    for words in ((), ("--data", data)):
        with pytest.raises(LedgerError, match=r"of these data is gone, so nothing is released; put it back"):
            output("--state", tmp_path / "state", *words)


def test_an_owner_raises_the_limit_and_the_statement_records_it(data: Path, tmp_path: Path) -> None:
    text = output("--data", data, "--state", tmp_path / "state", "--raise-to", 12)
    assert "guarantee: ε = 12, δ = 1e-05, for all requests together" in text
    assert "raised by the owner from ε = 10 to ε = 12 at 20" in text
    assert "does not cover raised budget: the limit was ε = 10 until 20" in text
    client, record = json.loads(output("--data", data, "--state", tmp_path / "state", "--json"))
    assert client["epsilon"] == record["epsilon"] == 12.0
    assert [(increase["before"], increase["epsilon"]) for increase in client["raises"]] == [(10.0, 12.0)]
    assert client["total"] == pytest.approx(Zcdp().total(12.0, 1e-5))
    assert client["spent"] == 1.25
    assert "raised" not in output("--state", tmp_path / "nowhere")


def test_partitions_of_the_data_are_listed_and_raised_with_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    partitioning = Partitioning(PARTITIONS.resolve(), "rules", str(data), 2)
    for number, table in enumerate(partitioning.tables()):
        table.parent.mkdir(parents=True)
        table.write_text(f"home,rule\n{number},1\n")
        mark = fingerprint(str(table), (0, 1), 0)
        client = open_ledger(str(table), partitioning.state, mark, "client", Zcdp(), 10.0 + 5 * number, 1e-5)
        client.release(Slot("up", 1), client.terms(Gaussian(0.1, 1.0)), lambda: b"noise")
        client.close()
    assert output("--data", data, "--state", tmp_path / "state").count("run up: 0.1 in 1 release\n") == 2
    assert output("--state", tmp_path / "nowhere").count("run up: 0.1 in 1 release\n") == 2
    text = output("--data", data, "--state", tmp_path / "state", "--raise-to", 12)
    assert (text.count("guarantee: ε = 12"), text.count("guarantee: ε = 15")) == (3, 1)
    with pytest.raises(ConfigError, match="already allows"):
        output("--data", data, "--state", tmp_path / "state", "--raise-to", 12)


def test_only_the_limit_of_named_data_with_a_ledger_is_raised(data: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("")
    for words, reason in (
        ((), "--raise-to needs --data"),
        (("--data", tmp_path / "new.csv"), "these data have no ledger"),
        (("--data", data), "which was spent under unit client"),
    ):
        with pytest.raises(ConfigError, match=reason):
            output(*words, "--state", tmp_path / "state", "--raise-to", 5)
    with pytest.raises(ConfigError, match="already allows ε = 10"):
        output("--data", data, "--state", tmp_path / "state", "--raise-to", 10)


def test_a_limit_is_not_raised_while_a_client_uses_the_ledger(data: Path, tmp_path: Path) -> None:
    client = ledger_of(data, tmp_path / "state")
    with pytest.raises(LedgerError, match="another process is using it: stop that"):
        output("--data", data, "--state", tmp_path / "state", "--raise-to", 12)
    client.close()


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
