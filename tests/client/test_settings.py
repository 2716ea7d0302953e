"""Settings of a client: the node's configuration, then FEDLOOM_* variables."""

from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from pydantic import ValidationError

from client.settings import ClientSettings


def context(**node_config: str | int) -> Context:
    given = {key.replace("_", "-"): value for key, value in node_config.items()}
    return Context(1, 77, given, RecordDict(), {})  # type: ignore[arg-type]


def test_a_node_without_a_name_is_named_by_its_id() -> None:
    settings = ClientSettings.from_context(context())
    assert (settings.name, settings.data, settings.part) == ("node-77", "demo", (0, 1))


def test_the_nodes_configuration_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_DATA", "environment.csv")
    monkeypatch.setenv("FEDLOOM_NAME", "from-environment")
    monkeypatch.setenv("FEDLOOM_STATE_DIR", "/state")
    settings = ClientSettings.from_context(context(data="node.csv"))
    assert (settings.data, settings.name, settings.state_dir) == ("node.csv", "from-environment", Path("/state"))


def test_variables_without_the_prefix_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NAME", "DATA", "POLICY", "SHARD"):
        monkeypatch.setenv(name, "1/2")
    settings = ClientSettings()
    assert (settings.name, settings.data, settings.policy, settings.shard) == ("", "demo", None, "")


def test_in_flowers_simulation_the_kth_node_takes_the_kth_shard() -> None:
    settings = ClientSettings.from_context(context(partition_id=3, num_partitions=5))
    assert (settings.name, settings.part) == ("client-3", (3, 5))


@pytest.mark.parametrize("given", [{"shard": "3"}, {"shard": "-1/2"}, {"name": "a/b"}, {"name": "a b"}])
def test_invalid_shards_and_names_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        ClientSettings(**given)  # type: ignore[arg-type]
