"""Own data are dealt once: whatever runs, and however often, finds the one budget of the people they are about."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.app import open_session
from client.data.dataset import AnyDataset
from client.data.read import with_test
from client.data.sources import fingerprint
from client.policy import Policy
from client.privacy.ledger.locate import open_ledger
from client.privacy.ledger.records import Slot
from client.session import Session
from client.settings import ClientSettings
from client.tasks.ratings.data.reader import read_raters
from common.config.flatten import to_json
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, LedgerError, RefusedError
from common.models import parameters
from common.options import Scalar
from common.privacy.accounts import Zcdp
from common.privacy.mechanisms.gaussian import Gaussian
from common.tasks.registry import read_vocabulary
from common.wire.messages import EnrolRequest, TrainRequest
from deploy.budget_checks import require_one_budget, require_unpartitioned
from deploy.cli.app import app
from deploy.client_data import partition_source, read_catalogue, stored_clients, write_clients
from deploy.federation import ClientSpec
from deploy.partitioning import PARTITIONS, STATE, partition_ledgers
from tests.support.build import task_model

ALL = 10.0
HEADER = ["user,item,rating"]


def rows(people: Sequence[str]) -> list[str]:
    return [f"{who},i{k},{1 + (k + len(who)) % 5}" for who in people for k in range(6)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with eight people's ratings, a policy that limits ε, and the vocabulary."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    Path("my.csv").write_text("\n".join([*HEADER, *rows([f"u{k}" for k in range(8)])]) + "\n")
    Path("policy.toml").write_text(f"max-epsilon = {ALL}\n")
    Path("items.json").write_text(read_raters(Path("my.csv")).vocabulary.to_json())
    return tmp_path


def dealt(run: str, data: str = "my.csv", clients: int = 2) -> list[ClientSpec]:
    """What `up` does before it starts anything."""
    names = read_catalogue("ratings", Path("items.json"))
    parts = partition_source("ratings", data, names, clients)
    require_one_budget(configured(run), Policy(), data, clients, PARTITIONS.resolve())
    return write_clients("ratings", data, parts, Path("up", run).resolve(), PARTITIONS.resolve())


def names_of(parts: Sequence[AnyDataset]) -> list[set[str]]:
    """Who is in each part."""
    return [{rater.name for rater in part.units} for part in parts]


def configured(run: str, **options: Scalar) -> RunConfig:
    noise: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": ALL, "privacy.mechanism": "privunit"}
    return parse({"method": "fedavg", "task": "ratings", "run-id": run, **noise, **options})


def opened(spec: ClientSpec) -> Session:
    """The client as a process of its own opens it."""
    open_session.cache_clear()
    return open_session(
        ClientSettings(data=spec.data, name=spec.name, state_dir=spec.state or spec.home, policy=Path("policy.toml"))
    )


def spend(spec: ClientSpec, run: str) -> float:
    """Let a run have all it asks for; returns what it was offered."""
    session, config, catalogue = opened(spec), configured(run), Path("items.json").read_text()
    enrolled = session.enrol(EnrolRequest(run, to_json(config), catalogue))
    model = parameters(task_model(config, read_vocabulary("ratings", catalogue)))
    session.train(TrainRequest(1, enrolled.enrolment, model, cost=enrolled.budget, clip=1.0))
    return enrolled.budget


def typed(command: str) -> Result:
    """A command that ends before any process is started."""
    open_session.cache_clear()
    return CliRunner().invoke(app, command.split())


def people(spec: ClientSpec) -> set[str]:
    with Path(spec.data).open() as file:
        return {row["user"] for row in csv.DictReader(file)}


def test_a_second_run_finds_what_the_first_left_also_after_a_row_was_added() -> None:
    specs = dealt("one")
    assert [spend(spec, "one") for spec in specs] == pytest.approx([ALL, ALL])
    for spec in dealt("two"):
        with pytest.raises(RefusedError, match="privacy budget of this client's data is exhausted"):
            spend(spec, "two")
    before = [Path(spec.data).read_bytes() for spec in specs]
    with Path("my.csv").open("a") as file:
        file.write("u0,i9,3\n")
    Path("items.json").write_text(Path("items.json").read_text().replace('"i5"', '"i5","i9"'))
    specs = dealt("three")
    assert before != [Path(spec.data).read_bytes() for spec in specs], "a share has the row"
    for spec in specs:
        with pytest.raises(RefusedError, match="privacy budget of this client's data is exhausted"):
            spend(spec, "three")


def test_another_number_of_clients_would_be_a_second_budget() -> None:
    spend(dealt("one")[1], "one")
    names = read_catalogue("ratings", Path("items.json"))
    assert len(partition_source("ratings", "my.csv", names, 4)) == 4
    before = sorted(Path().rglob("*"))
    with pytest.raises(ConfigError) as refused:
        dealt("two", clients=4)
    assert f"the privacy budget of {Path('my.csv').resolve()} was spent by 2 clients, and 4 clients" in str(
        refused.value
    )
    assert str(refused.value).endswith("second one; set --clients 2")
    assert sorted(Path().rglob("*")) == before
    root, exact = PARTITIONS.resolve(), parse({"method": "fedavg", "task": "ratings"})
    require_one_budget(exact, Policy(), "my.csv", 4, root)
    refused_up = typed("up --task ratings --data my.csv --clients 4 --epsilon 10")
    assert str(refused_up.exception).endswith("second one; set --clients 2")
    with pytest.raises(ConfigError, match="set --clients 2"):
        require_one_budget(exact, Policy(max_epsilon=1.0), "my.csv", 4, root)
    with pytest.raises(ConfigError, match="set --clients 2 --task ratings"):
        require_one_budget(parse({"privacy.unit": "client", "method": "fedavg"}), Policy(), "my.csv", 2, root)


def test_the_budget_of_the_data_is_that_of_what_was_dealt() -> None:
    specs = dealt("one")
    for spec in specs:
        spend(spec, "one")
    told = json.loads(typed("budget --data my.csv --state state --json").stdout)
    assert [one["ledger"] for one in told] == [
        str(Path(spec.data).with_name(".ratings.csv.fedloom-ledger")) for spec in specs
    ]
    assert [one["left"] for one in told] == pytest.approx([0.0, 0.0], abs=1e-6)


def test_nothing_was_spent_where_nothing_was_released() -> None:
    opened(dealt("one")[0]).enrol(EnrolRequest("one", to_json(configured("one")), Path("items.json").read_text()))
    assert len(partition_ledgers(PARTITIONS.resolve(), "my.csv")) == 1
    assert len(dealt("two", clients=4)) == 4


def test_data_that_somebody_joined_with_are_not_dealt_beside_it() -> None:
    spend(ClientSpec("ann", "ratings", "my.csv", Path("ann")), "joined")
    with pytest.raises(ConfigError, match="was spent by a client that joined with it"):
        dealt("one")


def test_data_that_were_dealt_are_not_joined_with_beside_it() -> None:
    specs, root = dealt("one"), PARTITIONS.resolve()
    require_unpartitioned(root, "my.csv")
    spend(specs[1], "one")
    with pytest.raises(ConfigError, match="was spent by clients of fedloom up"):
        require_unpartitioned(root, "my.csv")
    refused = typed("join --server localhost:1 --insecure --task ratings --data my.csv --state-dir state --epsilon 5")
    assert "was spent by clients of fedloom up" in str(refused.exception)
    for spec in specs:
        require_unpartitioned(root, spec.data)
    require_unpartitioned(root, "demo:0-9")


def test_who_was_counted_with_a_client_stays_with_it() -> None:
    specs = dealt("one")
    spend(specs[0], "one")
    before = [people(spec) for spec in specs]
    with Path("my.csv").open("a") as file:
        file.write("\n".join(rows([f"new{k}" for k in range(5)])) + "\n")
    fresh = names_of(partition_source("ratings", "my.csv", None, 2))
    assert not all(old <= new for old, new in zip(before, fresh, strict=True)), "dealt anew, some would move"
    after = [people(spec) for spec in dealt("two")]
    assert all(old <= new for old, new in zip(before, after, strict=True))
    assert set.union(*after) == set.union(*fresh)

    gone = sorted(before[0])[0]
    text = Path("my.csv").read_text()
    Path("my.csv").write_text("".join(line for line in text.splitlines(True) if not line.startswith(f"{gone},")))
    assert gone not in set.union(*map(people, dealt("three")))
    Path("my.csv").write_text(text)
    assert gone in people(dealt("four")[0]), "who comes back comes back there"
    Path("my.csv").write_text("\n".join([*HEADER, *rows(sorted(before[1]))]) + "\n")
    with pytest.raises(DataError, match="partition client-0 has no records left"):
        dealt("five")
    [where] = PARTITIONS.glob("*/people.json")
    where.unlink()
    with pytest.raises(LedgerError, match=r"people\.json, the file with the client of each unit, is missing"):
        dealt("six")


def test_without_noise_data_are_dealt_as_a_simulation_deals_them() -> None:
    dealt("one")
    with Path("my.csv").open("a") as file:
        file.write("\n".join(rows(["new"])) + "\n")
    parts = partition_source("ratings", "my.csv", None, 2)
    assert [people(spec) for spec in dealt("two")] == names_of(parts)


def test_a_copy_finds_the_ledgers_and_a_ledger_that_is_gone_stops_all() -> None:
    specs = dealt("one")
    spend(specs[0], "one")
    Path("copy.csv").write_bytes(Path("my.csv").read_bytes())
    with pytest.raises(RefusedError, match="privacy budget of this client's data is exhausted"):
        spend(dealt("two", "copy.csv")[0], "two")
    [ledger] = partition_ledgers(PARTITIONS.resolve(), "copy.csv")
    assert ledger == Path(specs[0].data).with_name(".ratings.csv.fedloom-ledger")
    ledger.rename("elsewhere")
    with pytest.raises(LedgerError, match="is gone"):
        dealt("three")


def test_tables_of_clients_stay_where_they_are() -> None:
    folder, table = Path("tables"), Path("my.csv").read_text().splitlines()[1:]
    folder.mkdir()
    for name, users in {"a.csv": "0123", "b.csv": "4567"}.items():
        (folder / name).write_text("\n".join([*HEADER, *(row for row in table if row[1] in users)]) + "\n")
    specs = dealt("one", "tables")
    assert [Path(spec.data) for spec in specs] == [(folder / name).resolve() for name in ("a.csv", "b.csv")]
    spend(specs[0], "one")
    with pytest.raises(RefusedError, match="privacy budget of this client's data is exhausted"):
        spend(dealt("two", "tables")[0], "two")
    with pytest.raises(ConfigError, match="was spent by 2 clients"):
        dealt("three", "tables", clients=4)
    assert partition_ledgers(PARTITIONS.resolve(), "tables") == [folder.resolve() / ".a.csv.fedloom-ledger"]


def test_a_folder_that_gets_a_table_for_each_client_brings_no_second_budget() -> None:
    folder, table = Path("tables"), Path("my.csv").read_text().splitlines()[1:]
    folder.mkdir()
    for name, users in {"a.csv": "0123", "b.csv": "4567"}.items():
        (folder / name).write_text("\n".join([*HEADER, *(row for row in table if row[1] in users)]) + "\n")
    spend(dealt("one", "tables", clients=3)[0], "one")
    (folder / "c.csv").write_text("\n".join([*HEADER, *rows(["u8"])]) + "\n")
    with pytest.raises(ConfigError, match="was spent by 3 clients before each had a table"):
        dealt("two", "tables", clients=3)
    assert len(partition_ledgers(PARTITIONS.resolve(), "tables")) == 1


def test_a_folder_that_is_dealt_otherwise_than_by_its_tables_brings_no_second_budget() -> None:
    """As one of markets does that gets a catalogue, which makes one published set of them."""
    folder, table = Path("tables"), Path("my.csv").read_text().splitlines()[1:]
    folder.mkdir()
    for name, users in {"a.csv": "0123", "b.csv": "4567"}.items():
        (folder / name).write_text("\n".join([*HEADER, *(row for row in table if row[1] in users)]) + "\n")
    spend(dealt("one", "tables")[0], "one")
    (folder / "all.csv").write_text("\n".join([*HEADER, *table]) + "\n")
    for name in ("a.csv", "b.csv"):
        (folder / name).unlink()
    with pytest.raises(ConfigError, match="spent by clients with a table each"):
        dealt("two", "tables", clients=2)


def test_a_run_that_goes_on_finds_its_clients() -> None:
    specs = dealt("one")
    assert stored_clients(Path("up", "one").resolve()) == specs
    assert specs[0].state == Path(PARTITIONS, STATE).resolve()
    assert specs[0].source == str(Path("my.csv").resolve())


def test_a_source_is_the_same_whatever_is_held_out_of_it() -> None:
    Path("clicks.txt").write_text("a b\nb a\n" * 40)
    Path("held-out.txt").write_text("a b\n")
    root, told = PARTITIONS.resolve(), with_test("sessions", "clicks.txt", "held-out.txt")
    shares = [
        write_clients("sessions", data, partition_source("sessions", data, None, 2), Path("up").resolve(), root)[0].data
        for data in ("clicks.txt", told)
    ]
    assert shares[0] == shares[1]


def test_a_table_of_a_folder_that_was_joined_with_whole_has_no_budget_of_its_own() -> None:
    Path("tables").mkdir()
    table = Path("tables/a.csv")
    table.write_text(Path("my.csv").read_text())
    require_unpartitioned(PARTITIONS.resolve(), str(table))
    mark = fingerprint("tables", (0, 1), 0)
    ledger = open_ledger("tables", Path("state"), mark, "client", Zcdp(), ALL, 1e-5)
    ledger.release(Slot("run", 1), ledger.terms(Gaussian(0.1, 1.0)), lambda: b"noise")
    ledger.close()
    with pytest.raises(ConfigError, match="would have a second one"):
        require_unpartitioned(PARTITIONS.resolve(), str(table))
