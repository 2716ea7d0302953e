"""Clients of a hub from its folder or its table, and options that contradict a hub."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.owner.journal import ConnectionEntry, RequestJournal
from client.session import Session
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes, write_homes
from common.config.parse import parse
from common.contract import terms_of
from common.errors import ConfigError
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli.app import app
from deploy.cli.options import CLIENTS_FILE as FILE
from deploy.cli.options import ClientRequest, DataRequest, PolicyRequest, ServerRequest
from deploy.federation.hub import HubRequest, open_sessions, read_clients, read_hosted

pytestmark = pytest.mark.usefixtures("here")

AT = ServerRequest(server="localhost:1", insecure=True)


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    folder = tmp_path / "wards"
    folder.mkdir()
    for k in (3, 4):
        write_homes(folder / f"ward-{k}.csv", Homes(demo_homes(0, 3, seed=k), demo_catalogue()))
    (folder / "default.toml").write_text("max-local-steps = 2\n")
    (folder / "strict.toml").write_text("max-epsilon = 1.0\n")
    (folder / FILE).write_text(
        '[defaults]\npolicy = "default.toml"\n[clients.ward-3]\ndata = "ward-3.csv"\n'
        '[clients.ward-4]\ndata = "ward-4.csv"\npolicy = "strict.toml"\n'
    )
    return folder


def request(data: str, clients: int | None = None, **limits: Any) -> HubRequest:
    client = ClientRequest(state_dir=Path("state"))
    return HubRequest(DataRequest(data=data), client, PolicyRequest(**limits), clients)


def opened(of: HubRequest) -> dict[str, Session]:
    return open_sessions(AT, "hub", of, read_hosted(of))


def test_a_folder_names_clients_with_their_policies(wards: Path) -> None:
    sessions = opened(request(str(wards)))
    assert list(sessions) == ["hub/ward-3", "hub/ward-4"]
    assert [session.client for session in sessions.values()] == [*sessions]
    assert [s.policy.max_local_steps for s in sessions.values()] == [2, 0]
    assert [s.policy.require_noise for s in sessions.values()] == [False, True]


def test_each_client_has_its_own_contract_and_the_operator_sees_each_policy_once(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = opened(request(str(wards))).values()
    assert capsys.readouterr().err.count("at most, the policy allows a server:") == 2
    config = parse({"task": "rules", "rounds": 2})
    one.consent.check(terms_of(config))
    one.consent.settle()
    assert (one.consent.contract, other.consent.contract) == (terms_of(config), None)
    opened(request(str(wards), methods=["fedavg"], epsilon=1.0))
    assert capsys.readouterr().err.count("at most, the policy allows a server:") == 1


def test_limits_of_the_command_hold_for_each_client(wards: Path) -> None:
    sessions = opened(request(str(wards), epsilon=0.5))
    assert [s.policy.max_epsilon for s in sessions.values()] == [0.5, 0.5]
    assert [s.policy.max_local_steps for s in sessions.values()] == [2, 0]


def test_a_table_is_partitioned_once(wards: Path, tmp_path: Path) -> None:
    table = str(wards / "ward-3.csv")
    first = opened(request(table, 3))
    assert list(first) == ["hub/client-0", "hub/client-1", "hub/client-2"]
    dealt = sorted((tmp_path / ".fedloom" / "dealt").glob("*-rules-3/client-*/*.csv"))
    contents = [path.read_bytes() for path in dealt]
    assert len(contents) == 3
    opened(request(table, 3))
    assert [path.read_bytes() for path in dealt] == contents
    assert len(opened(request("demo:0-4", 0))) == 4


def test_a_client_whose_data_cannot_be_read_is_left_out(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wards / "ward-3.csv").write_text("no,such\ntable,1\n")
    assert list(opened(request(str(wards)))) == ["hub/ward-4"]
    assert "hub/ward-3 is left out" in capsys.readouterr().err.replace("\n", " ")
    (wards / "ward-4.csv").unlink()
    with pytest.raises(ConfigError, match="no client of this hub is left"):
        opened(request(str(wards)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "clients"),
        ("[clients]\n", "at least 1 item"),
        ("[clients.a]\n", "clients.a.data: Field required"),
        ('[clients.a]\ndata = "a.csv"\nlocked = true\n', "clients.a.locked"),
        ("[clients.a\n", "clients.toml"),
        ('[clients.a]\ndata = "../a.csv"\n', "'../a.csv' leads out of the folder"),
        ('[clients.a]\ndata = "link.csv"\n', "'link.csv' leads out of the folder"),
        ('[clients.a]\ndata = "a.csv"\npolicy = "/etc/passwd"\n', "'/etc/passwd' leads out of the folder"),
        ('[clients.a]\ndata = "a.csv"\nanswer = ["all"]\n', "clients.a.answer.0: Input should be 'sums' or 'replies'"),
        ('[clients.a]\ndata = "a.csv"\nanswer = []\n', "clients.a.answer: Tuple should have at least 1 item"),
        ('[clients."a/b"]\ndata = "a.csv"\n', "invalid name 'a/b'"),
    ],
)
def test_a_malformed_file_is_refused(text: str, reason: str, wards: Path) -> None:
    (wards / "link.csv").symlink_to(wards.parent)
    (wards / FILE).write_text(text)
    with pytest.raises(ConfigError) as error:
        read_clients(wards)
    assert reason in str(error.value)


def test_a_locked_policy_may_be_made_stricter_only(wards: Path) -> None:
    text = (wards / FILE).read_text()
    (wards / FILE).write_text(text.replace('"default.toml"\n', '"default.toml"\nlocked = true\n'))
    with pytest.raises(ConfigError, match=r"clients.ward-4: strict.toml allows more .*\(max-local-steps\)"):
        read_clients(wards)
    (wards / "strict.toml").write_text("max-epsilon = 1.0\nmax-local-steps = 1\n")
    assert [client.name for client in read_clients(wards)] == ["ward-3", "ward-4"]


def test_an_answer_of_sums_alone_is_a_client_s_own_or_the_default_of_all(wards: Path) -> None:
    text = (wards / FILE).read_text()
    assert [client.sums_only for client in read_clients(wards)] == [False, False]
    (wards / FILE).write_text(f'{text}answer = ["sums"]\n')
    assert [client.sums_only for client in read_clients(wards)] == [False, True]
    (wards / FILE).write_text(
        text.replace("[defaults]\n", '[defaults]\nanswer = ["sums"]\n') + 'answer = ["replies"]\n'
    )
    assert [client.sums_only for client in read_clients(wards)] == [True, False]
    (wards / FILE).write_text((wards / FILE).read_text().replace("[defaults]\n", "[defaults]\nlocked = true\n"))
    (wards / "strict.toml").write_text("max-epsilon = 1.0\nmax-local-steps = 1\n")
    with pytest.raises(ConfigError, match=r"clients.ward-4: answer allows more than the locked one"):
        read_clients(wards)


def test_one_client_is_no_sum(wards: Path) -> None:
    (wards / FILE).write_text('[clients.ward-3]\ndata = "ward-3.csv"\nanswer = ["sums"]\n')
    assert "one client is no sum" in str(join("--data", str(wards), "--name", "ward").exception)


def test_several_processes_train_a_hub_alone() -> None:
    refused = join("--data", "demo:0-2", "--workers", "2").exception
    assert isinstance(refused, ConfigError)
    assert "--workers needs a hub" in str(refused)


def test_the_status_of_a_hosted_client_names_who_is_trusted(tmp_path: Path) -> None:
    for client in ("ward/ward-3", "alone"):
        RequestJournal(tmp_path).write(ConnectionEntry("2026-11-23T10:00:00+00:00", client, "left", "localhost:1"))
    lines = " ".join(CliRunner().invoke(app, ["status", "--state-dir", str(tmp_path)]).output.split())
    assert "hosted by ward: its process reads these data, holds this ledger and adds up" in lines
    assert lines.count("its operator is trusted") == 1


def join(*words: str) -> Result:
    return CliRunner().invoke(app, ["join", "--server", "localhost:1", "--insecure", "--state-dir", "state", *words])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--clients", "2"), "a hub needs a name"),
        (("--clients", "2", "--name", "a/b"), "invalid name 'a/b'"),
        (("--clients", "2", "--shard", "0/2"), "a hub takes no --adapt, --test or --shard"),
        (("--data", "wards", "--clients", "2"), "names the clients; remove --clients"),
    ],
)
@pytest.mark.usefixtures("wards")
def test_options_that_contradict_a_hub_are_refused(words: tuple[str, ...], reason: str) -> None:
    assert reason in str(join(*words).exception)
