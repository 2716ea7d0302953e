"""Vocabularies that the clients of a run find together, in plaintext and by secure sums."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.hub.hub import Hub
from client.owner.policy import Policy
from common.arrays import Array
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, QuorumError
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.tasks import names
from common.tasks.names import NameSum
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import entry_text
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid, simulate_clients
from deploy.simulation.helpers import make_helpers
from server.record.folder import RunDirectory
from server.run import run
from tests.support.hubs import NodeGrid, direct

SHOPS = 4
COMMON = [f"tea {k:02d}" for k in range(12)]
"""Items that all shops sell."""


def pair(shop: int) -> str:
    """Return the item that a shop shares with the next one alone."""
    return f"shared-by-{shop // 2}"


def secret(shop: int) -> str:
    return f"only-in-{shop}"


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Sequence[AnyDataset]:
    """Sessions of four shops, each read under its own names."""
    folder, rng = tmp_path_factory.mktemp("shops"), np.random.default_rng(0)
    for shop in range(SHOPS):
        items, rows = [*COMMON, pair(shop), secret(shop)], ["user,session,item,timestamp"]
        for session in range(24):
            clicks = rng.choice(len(items), 4, replace=False).tolist()
            rows += [f"u{session % 6},{session},{items[k]},{1000 * session + n}" for n, k in enumerate(clicks)]
        (folder / f"shop-{shop}.csv").write_text("\n".join(rows) + "\n")
    return [read_all("sessions", str(folder / f"shop-{k}.csv")) for k in range(SHOPS)]


def configured(**options: Scalar) -> RunConfig:
    quick: dict[str, Scalar] = {
        "task": "sessions",
        "method": "fedavg",
        "rounds": 1,
        "run-id": "toy",
        "catalogue": "federated",
    }
    wait = {"federation.wait": 1.0, "federation.min-clients": 1, "secure-sums.min-sum": 3}
    return parse(
        {**quick, **wait, **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}}
    )


def items_of(folder: Path) -> list[str]:
    return list(json.loads(RunDirectory(folder, "toy").catalogue())["items"])


@pytest.mark.parametrize("trust", ["local", "helpers"])
def test_the_vocabulary_has_the_names_of_enough_clients(
    shops: Sequence[AnyDataset], tmp_path: Path, trust: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fedloom.client")
    result = simulate_clients(configured(privacy__trust=trust), shops, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 1)
    assert items_of(tmp_path) == COMMON
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for rare in {name for shop in range(SHOPS) for name in (pair(shop), secret(shop))}:
        assert rare.encode() not in written
        assert rare not in caplog.text
    assert caplog.text.count("12 of 14 names in the data are sent") == SHOPS
    left = {path.name.partition(".")[2] for path in tmp_path.rglob("*-names-*")}
    assert left <= {"terms.json"}, "the sums themselves are removed"
    assert any("hash buckets of at least 3 clients" in channel for channel in result.privacy.uncovered)


def test_fewer_holders_make_a_larger_vocabulary(shops: Sequence[AnyDataset], tmp_path: Path) -> None:
    simulate_clients(configured(federation__min_holders=2), shops, tmp_path)
    assert items_of(tmp_path) == sorted([*COMMON, "shared-by-0", "shared-by-1"])


@pytest.mark.parametrize("trust", ["local", "helpers"])
@pytest.mark.parametrize("step", [0, 1])
def test_a_run_that_is_killed_while_it_finds_names_goes_on(
    shops: Sequence[AnyDataset], tmp_path: Path, trust: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, calls = configured(privacy__trust=trust), []
    real = NameSum.next if step == 0 else NameSum.names

    def killed(self: NameSum, total: Array, least: int) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(self, total, least)

    monkeypatch.setattr(NameSum, real.__name__, killed)
    helpers = make_helpers(config)
    with pytest.raises(KeyboardInterrupt), InProcessGrid(open_sessions(shops)[0], 0, helpers=helpers) as grid:
        run(grid, config, tmp_path)
    assert not RunDirectory(tmp_path, "toy").has_catalogue
    with InProcessGrid(open_sessions(shops)[0], 0, helpers=helpers) as grid:
        result = run(grid, config.model_copy(update={"resume": True}), tmp_path)
    assert (result.status, items_of(tmp_path)) == ("completed", COMMON)


def test_a_finished_run_goes_on_with_its_own_vocabulary(shops: Sequence[AnyDataset], tmp_path: Path) -> None:
    simulate_clients(configured(), shops, tmp_path)
    before = RunDirectory(tmp_path, "toy").catalogue()
    result = simulate_clients(configured(rounds=2, resume=True, federation__min_holders=2), shops, tmp_path)
    assert (result.rounds_done, RunDirectory(tmp_path, "toy").catalogue()) == (2, before)


def test_clients_of_a_hub_find_names_like_others(shops: Sequence[AnyDataset], tmp_path: Path) -> None:
    sessions, _ = open_sessions(shops)
    for number in (1, 2):
        sessions[number].client = f"a/client-{number}"
    hub = Hub({sessions[number].client: sessions[number] for number in (1, 2)}, 1)
    run(NodeGrid({3: direct(sessions[3]), 4: direct(sessions[4]), 8: hub.respond}), configured(), tmp_path)
    assert items_of(tmp_path) == COMMON


def test_clients_whose_owner_keeps_names_are_counted(shops: Sequence[AnyDataset], tmp_path: Path) -> None:
    sessions, stores = open_sessions(shops)
    for store, session in zip(stores, sessions.values(), strict=True):
        store.policy = session.runs._policy = Policy()
        session.releaser.policy = store.policy
    with InProcessGrid(sessions, 0) as grid, pytest.raises(QuorumError) as caught:
        run(grid, configured(), tmp_path)
    reason = "4 refused: the policy does not allow sending names in the data in plaintext (allow-names = never)"
    assert str(caught.value).endswith(f'; {reason}; allow-names = "clear" does')
    result = RunDirectory(tmp_path, "toy").result()
    assert result is not None
    assert (result.status, reason in result.reason) == ("failed", True)


def test_names_that_nobody_shares_are_no_vocabulary(shops: Sequence[AnyDataset], tmp_path: Path) -> None:
    others = partition(read_all("sessions", "demo:0-3"), 3)
    with pytest.raises(DataError, match=r"no name is in the data of 5 clients; lower federation\.min-holders"):
        simulate_clients(configured(federation__min_holders=5), [*shops, *others], tmp_path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"task": "traffic", "method": "fedavg"},
            "does not apply to the variables of task 'traffic', which have more than names; name a file",
        ),
        ({"privacy__unit": "client", "privacy__trust": "local"}, "needs noise of helpers on sums of names"),
        ({"privacy__unit": "record", "model": "paper"}, "needs noise of helpers on sums of names"),
        ({"privacy__unit": "client", "privacy__name_share": 0.0}, "needs noise of helpers on sums of names"),
        (
            {"privacy__unit": "client", "privacy__name_share": 0.6, "privacy__metric_share": 0.4},
            "leave nothing for updates",
        ),
    ],
)
def test_runs_without_such_a_vocabulary_are_refused(options: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        configured(**options)


NOISED: dict[str, Scalar] = {
    "method": "ridge",
    "privacy__unit": "client",
    "privacy__epsilon": 10.0,
    "privacy__name_share": 0.6,
    "privacy__trust": "helpers",
}


@pytest.fixture
def few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few clients drown the noise."""
    monkeypatch.setattr(names, "MOST_NOISED_NAMES", 3)
    monkeypatch.setattr(names, "NOISED_BUCKETS", 1 << 13)


@pytest.mark.usefixtures("few_names")
def test_noise_on_names_is_charged_and_hides_those_of_one_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rows = "user,session,item,timestamp"
    clients = []
    for client in range(48):
        items = ["tea", "rake", f"only-in-{client}"]
        clicks = [f"u{n % 3},{n},{items[(n + k) % 3]},{1000 * n + k}" for n in range(6) for k in range(3)]
        (tmp_path / "c.csv").write_text("\n".join([rows, *clicks]) + "\n")
        clients.append(read_all("sessions", str(tmp_path / "c.csv")))
    sessions, _ = open_sessions(clients)
    config = configured(**NOISED)
    with InProcessGrid(sessions, 0, helpers=make_helpers(config)) as grid:
        result = run(grid, config, tmp_path)
    assert (result.status, items_of(tmp_path)) == ("completed", ["rake", "tea"])
    ledger = sessions[1].releaser.budget.ledger(config.privacy)
    spent, total = ledger.spent_in("toy"), gdp_of(10.0, config.privacy.delta)
    assert spent == pytest.approx(total, rel=1e-3), "the sums of names and of the closed form have the whole budget"
    assert spent <= total
    assert result.privacy.uncovered[-2].startswith(
        "names: a server that lies about frequent hash buckets learns which of"
    )
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file.name != "c.csv")
    assert b"only-in-" not in written
    assert "only-in-" not in caplog.text


def test_noise_that_hides_all_names_is_refused_before_they_are_sent(
    shops: Sequence[AnyDataset], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"noise would hide all names: \d+ clients must have .* 4 are here"):
        simulate_clients(configured(**NOISED), shops, tmp_path)


@pytest.mark.parametrize("task", ["rules", "sessions", "ratings", "markets"])
@pytest.mark.parametrize("trust", ["local", "helpers"])
def test_every_task_with_names_finds_them(tmp_path: Path, task: str, trust: str) -> None:
    units = {"rules": 80, "sessions": 40, "ratings": 40, "markets": 5}[task]
    whole = read_all(task, f"demo:0-{units}")
    config = configured(task=task, federation__deadline=60.0, privacy__trust=trust)
    result = simulate_clients(config, partition(whole, 5), tmp_path)
    assert result.status == "completed"
    found = set(map(entry_text, read_vocabulary(task, RunDirectory(tmp_path, "toy").catalogue()).entries()))
    assert len(found) > 20
    scale = {'["low",0.0]', '["high",5.0]'}
    assert found <= set(map(entry_text, whole.vocabulary.entries())) | scale


def test_rules_keep_the_abilities_of_devices(tmp_path: Path) -> None:
    simulate_clients(configured(task="rules"), partition(read_all("rules", "demo:0-120"), 4), tmp_path)
    found = json.loads(RunDirectory(tmp_path, "toy").catalogue())
    assert set(found["notices"]) <= set(found["entities"])
    assert "turn on" in found["does"]["Light"]
