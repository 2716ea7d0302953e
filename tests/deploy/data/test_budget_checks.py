"""One privacy budget for the same people, however their data are partitioned among clients."""

from pathlib import Path

import pytest

from client.owner.policy import Policy
from common.config.parse import parse, to_json
from common.errors import ConfigError
from common.wire.messages import EnrolRequest
from deploy.data.budgets import require_one_budget, require_unpartitioned
from deploy.data.partitions import PARTITIONS, partition_ledgers
from deploy.data.sources import partition_source, read_catalogue
from deploy.federation.start import ClientSpec
from tests.support.ledgers import spend_on
from tests.support.partitions import invoke, noisy, opened, partition_for, spend, write_ratings, write_two_tables

pytestmark = pytest.mark.usefixtures("workplace")


def test_another_number_of_clients_would_have_a_second_budget() -> None:
    spend(partition_for("one")[1], "one")
    names = read_catalogue("ratings", Path("items.json"))
    assert len(partition_source("ratings", "my.csv", names, 4)) == 4
    before = sorted(Path().rglob("*"))
    with pytest.raises(ConfigError) as refused:
        partition_for("two", clients=4)
    spent = f"the privacy budget of {Path('my.csv').resolve()} was spent by 2 clients, and 4 clients"
    assert spent in str(refused.value)
    assert str(refused.value).endswith("second one; set --clients 2")
    assert sorted(Path().rglob("*")) == before
    refused_up = invoke("up --task ratings --data my.csv --clients 4 --epsilon 10")
    assert str(refused_up.exception).endswith("second one; set --clients 2")


def test_runs_without_noise_and_policies_and_tasks_are_distinguished() -> None:
    spend(partition_for("one")[1], "one")
    root, exact = PARTITIONS.resolve(), parse({"method": "fedavg", "task": "ratings"})
    require_one_budget(exact, Policy(), "my.csv", 4, root)
    with pytest.raises(ConfigError, match="set --clients 2"):
        require_one_budget(exact, Policy(max_epsilon=1.0), "my.csv", 4, root)
    with pytest.raises(ConfigError, match="set --clients 2 --task ratings"):
        require_one_budget(parse({"privacy.unit": "client", "method": "fedavg"}), Policy(), "my.csv", 2, root)


def test_enrolment_without_a_release_spends_nothing() -> None:
    request = EnrolRequest("one", to_json(noisy("one")), Path("items.json").read_text())
    opened(partition_for("one")[0]).enrol(request)
    assert len(partition_ledgers(PARTITIONS.resolve(), "my.csv")) == 1
    assert len(partition_for("two", clients=4)) == 4


def test_data_of_a_joined_client_are_not_partitioned() -> None:
    spend(ClientSpec("ann", "ratings", "my.csv", Path("ann")), "joined")
    with pytest.raises(ConfigError, match="was spent by a client that joined with it"):
        partition_for("one")


def test_a_client_does_not_join_with_partitioned_data() -> None:
    specs, root = partition_for("one"), PARTITIONS.resolve()
    require_unpartitioned(root, "my.csv")
    spend(specs[1], "one")
    with pytest.raises(ConfigError, match="was spent by clients of fedloom up"):
        require_unpartitioned(root, "my.csv")
    refused = invoke("join --server localhost:1 --insecure --task ratings --data my.csv --state-dir state --epsilon 5")
    assert "was spent by clients of fedloom up" in str(refused.exception)
    for spec in specs:
        require_unpartitioned(root, spec.data)
    require_unpartitioned(root, "demo:0-9")


def test_a_table_of_a_folder_that_a_client_joined_with_has_no_budget_of_its_own() -> None:
    Path("tables").mkdir()
    table = Path("tables/a.csv")
    table.write_text(Path("my.csv").read_text())
    require_unpartitioned(PARTITIONS.resolve(), str(table))
    spend_on("tables", Path("state"))
    with pytest.raises(ConfigError, match="would have a second one"):
        require_unpartitioned(PARTITIONS.resolve(), str(table))


def test_partitions_of_a_folder_have_no_budget_beside_its_tables() -> None:
    write_two_tables()
    spend(partition_for("one", "tables")[0], "one")
    with pytest.raises(ConfigError, match="was spent by 2 clients"):
        partition_for("two", "tables", clients=4)


def test_a_folder_that_gets_a_table_for_each_client_has_no_second_budget() -> None:
    folder = write_two_tables()
    spend(partition_for("one", "tables", clients=3)[0], "one")
    write_ratings(folder / "c.csv", ["u8"])
    with pytest.raises(ConfigError, match="was spent by 3 clients before each had a table"):
        partition_for("two", "tables", clients=3)
    assert len(partition_ledgers(PARTITIONS.resolve(), "tables")) == 1


def test_a_folder_whose_tables_are_replaced_by_one_has_no_second_budget() -> None:
    """Likewise a folder of markets that gets a catalogue, which turns its tables into one published set."""
    folder = write_two_tables()
    spend(partition_for("one", "tables")[0], "one")
    (folder / "all.csv").write_text(Path("my.csv").read_text())
    for name in ("a.csv", "b.csv"):
        (folder / name).unlink()
    with pytest.raises(ConfigError, match="spent by clients with a table each"):
        partition_for("two", "tables", clients=2)
