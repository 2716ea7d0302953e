"""Commands `join` with an owner's limits, `join --adapt` of a late-joining client, and `keys`."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from flwr.app import Context, RecordDict
from typer.testing import CliRunner

from client.app import open_session
from client.data.read import read_all
from client.inference.stored_models import newest_stored
from client.secure.helper.app import Respond
from client.session import Session
from client.settings import ClientSettings
from client.tasks.markets.data.markets import Markets, write_markets
from common.config.parse import parse, to_json
from common.errors import ConfigError, DataError, RefusedError
from common.node_names import fingerprint
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.secure.cards import NodeCard
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.rules.vocabulary import demo_catalogue
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, HELPER, EnrolRequest, HelperReply, HelperRequest
from deploy.cli.app import app
from deploy.keys.certificates import make_authority
from deploy.keys.nodes import load_private_key, make_node_key
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from tests.support.toys import instruction

LATE: Markets = read_all("markets", "demo:5-6")

ITEM = LATE.vocabulary.items[int(LATE.units[0].ratings[0, 1])]

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def shops(here: Path) -> None:
    """Store a finished run of two markets with private layers, and the table of a third market."""
    small = {"tasks.markets.width": 16, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    flat = {"method": "pfgnn", "task": "markets", "model": "paper", "rounds": 1, "run-id": "shops", **small}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("markets", "demo:3-5"), here / "runs")
    write_markets(here / "late.csv", LATE)


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def adapt(*words: str) -> Result:
    return command("join", "--adapt", "shops", "--state-dir", "state", "--data", *words)


@pytest.mark.usefixtures("shops")
def test_a_late_joining_market_finds_its_personalized_model_by_its_data() -> None:
    joined = adapt("late.csv")
    assert joined.exit_code == 0, joined.exception
    answered = command("recommend", "--data", "late.csv", "--item", ITEM, "--json", "--state-dir", "state")
    assert answered.exit_code == 0, answered.exception
    assert "by the personalized model of client newcomer of run shops" in answered.stderr.replace("\n", " ")
    assert json.loads(answered.stdout)


@pytest.mark.usefixtures("shops")
def test_a_named_task_must_be_that_of_the_run() -> None:
    assert adapt("late.csv", "--task", "markets").exit_code == 0
    refused = adapt("late.csv", "--task", "rules").exception
    assert isinstance(refused, ConfigError)
    assert str(refused) == "run 'shops' is of task markets; remove --task rules, or adapt another run"
    assert isinstance(adapt("late.csv", "--task", "marktes").exception, ConfigError)


@pytest.mark.usefixtures("shops")
def test_unusable_data_are_reported_to_their_owner(here: Path) -> None:
    text = (here / "late.csv").read_text()
    (here / "bad.csv").write_text(text.replace("P0", "Q0"))
    refused = adapt("bad.csv").exception
    assert isinstance(refused, DataError)
    assert "bad.csv: none of its " in str(refused)
    assert str(refused).endswith("or train on these data alone with fedloom simulate --task markets --data bad.csv")


@pytest.mark.usefixtures("shops")
def test_adaptation_sends_nothing_and_needs_no_noise(here: Path) -> None:
    (here / "policy.toml").write_text('max-epsilon = 1.0\nshare-metrics = "never"\n')
    joined = adapt("late.csv", "--policy", "policy.toml")
    assert joined.exit_code == 0, joined.exception
    assert "nothing was sent" in joined.stderr


@pytest.mark.parametrize("task", ["rules", "ratings", "sessions"])
def test_a_client_that_joins_after_the_solution_answers_by_it_at_once(task: str, here: Path) -> None:
    flat: dict[str, Scalar] = {"method": "ridge", "task": task, "run-id": "shops", "federation.min-clients": 1}
    simulate(parse(flat), read_all(task, "demo:0-200" if task == "rules" else "demo:0-12"), here / "runs")
    joined = adapt("demo:20-28", "--name", "newcomer")
    assert joined.exit_code == 0, joined.exception
    assert "nothing was sent" in joined.stderr
    answered = command("recommend", "--data", "demo:20-28", "--run", "shops", "--json", "--state-dir", "state")
    assert answered.exit_code == 0, answered.exception
    assert json.loads(answered.stdout)
    stored = newest_stored(task, "demo:20-28", "shops", [here / "state"])
    assert stored is not None
    assert stored.client == "newcomer"
    solved, _ = RunDirectory(here / "runs", "shops").load_model()
    for name, array in stored.statics.items():
        np.testing.assert_array_equal(array, solved[name], err_msg=name)
    assert len(stored.statics) > 3


def join(monkeypatch: pytest.MonkeyPatch, *words: str, message: str = "") -> Session:
    """Return the client that `join` opens, without a connection; it must print the message on stderr."""
    configs: list[dict[str, Scalar]] = []

    def resident(app: object, server: object, *, node_config: dict[str, Scalar], **rest: object) -> None:
        configs.append(node_config)

    monkeypatch.setattr("client.node.resident.run_resident", resident)
    monkeypatch.setattr("client.node.resident.leave_on_signals", lambda stop: None)
    server = ("--server", "localhost:1", "--insecure", "--data", "demo:0-9", "--state-dir", "state", "--name", "ann")
    done = command("join", *server, *words)
    assert done.exit_code == 0, done.exception
    assert message in done.stderr
    return open_session(ClientSettings.from_node(configs[0], ""))


def invitation(**options: Scalar) -> EnrolRequest:
    config = parse({"run-id": "toy", **{key.replace("__", "."): value for key, value in options.items()}})
    return EnrolRequest("toy", to_json(config), demo_catalogue().to_json())


def test_a_client_with_an_epsilon_refuses_runs_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    session = join(monkeypatch, "--method", "fedavg", "--epsilon", "2", "--delta", "1e-6")
    with pytest.raises(RefusedError, match="the policy requires differential privacy"):
        session.enrol(invitation(method="fedavg"))
    with pytest.raises(RefusedError, match="does not allow method 'fedrule'"):
        session.enrol(invitation(privacy__unit="client"))
    with pytest.raises(RefusedError, match=r"privacy\.delta = 1e-05 exceeds the policy's delta = 1e-06"):
        session.enrol(invitation(method="fedavg", privacy__unit="client"))
    reply = session.enrol(invitation(method="fedavg", privacy__unit="client", privacy__delta=1e-6))
    assert reply.budget == pytest.approx(gdp_of(2.0, 1e-6)), "less than the run's budget"
    assert reply.shares_metrics, "demo data are public"
    assert stat.S_IMODE(Path("state/ann/policy.toml").stat().st_mode) == 0o600


def test_without_limits_on_the_command_line_no_policy_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    join(monkeypatch).enrol(invitation())
    assert not Path("state/ann/policy.toml").exists()


def test_a_rater_without_ratings_takes_part_with_a_message(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "mine.csv").write_text("user,item,rating\nzoe,,\n")
    session = join(monkeypatch, "--task", "ratings", "--data", "mine.csv", message="no rating")
    config = parse({"run-id": "films", "task": "ratings", "method": "fedavg", "privacy.unit": "client"})
    reply = session.enrol(EnrolRequest("films", to_json(config), ProductCatalogue(items=("tea", "milk")).to_json()))
    assert reply.examples == 1


def test_an_empty_table_is_refused_at_once(here: Path) -> None:
    (here / "empty.csv").write_text("user,item,rating\n")
    server = ("--server", "localhost:1", "--insecure", "--state-dir", "state", "--name", "ann")
    refused = command("join", *server, "--task", "ratings", "--data", "empty.csv").exception
    assert isinstance(refused, DataError)
    assert "empty.csv" in str(refused)


def test_a_server_certificate_is_renewed_on_request() -> None:
    keys = ("keys", "server", "--home", "home")
    assert command(*keys).exit_code == 0
    before = Path("home/server.pem").read_bytes()
    refused = command(*keys).exception
    assert isinstance(refused, ConfigError)
    assert "server.pem exists; set --renew for a new certificate under the same authority" in str(refused)
    assert Path("home/server.pem").read_bytes() == before
    assert command(*keys, "--renew").exit_code == 0
    assert Path("home/server.pem").read_bytes() != before


def test_a_node_keeps_its_key() -> None:
    assert command("keys", "node", "node.key").exit_code == 0
    refused = command("keys", "node", "node.key").exception
    assert isinstance(refused, ConfigError)
    assert "node.key exists and identifies its client; name another file for another client" in str(refused)


@pytest.mark.parametrize("words", ["up --port 70000", "serve --port 0", "serve --control-port 70000"])
def test_an_invalid_port_is_refused(words: str) -> None:
    done = command(*words.split())
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
    assert f"'{words.split()[1]}'" in done.stderr


OPTIONS = ("join", "--server", "localhost:1", "--data", "demo:0-9", "--state-dir", "state", "--policy", "policy.toml")


def cards(monkeypatch: pytest.MonkeyPatch, policy: str) -> list[str]:
    """Return the cards that the client sends for a run; it must refuse an empty enrolment."""
    Path("policy.toml").write_text(policy)
    found: list[str] = []

    def resident(client: Respond, server: object, **rest: object) -> None:
        context = Context(1, 1, {"data": "demo:0-9", "state-dir": "state"}, RecordDict(), {})
        question = encode(HelperRequest("toy", "{}"))
        found.append(decode(HelperReply, client(instruction(1, question, HELPER), context).content).card)
        assert client(instruction(1, RecordDict(), ENROL), context).has_error()

    monkeypatch.setattr("client.node.resident.run_resident", resident)
    monkeypatch.setattr("client.node.resident.leave_on_signals", lambda stop: None)
    make_node_key(Path("node.key"))
    make_authority(Path())
    done = CliRunner().invoke(app, [*OPTIONS, "--ca", "ca.pem", "--key", "node.key", "--name", "ann"])
    assert done.exit_code == 0, done.exception
    return found


def test_a_helping_client_sends_a_card_signed_by_its_node_key(monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = cards(monkeypatch, "serve-as-helper = true\n")
    card = NodeCard.from_json(text)
    assert (card.name, card.run, card.serves) == ("ann-helper", "toy", "also")
    assert card.fingerprint == fingerprint(load_private_key(Path("node.key")).public_key())
    assert not Path("state/ann/helper").exists()


def test_by_default_a_client_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cards(monkeypatch, "") == [""]


def test_without_a_key_a_client_cannot_help() -> None:
    Path("policy.toml").write_text("serve-as-helper = true\n")
    refused = CliRunner().invoke(app, [*OPTIONS, "--insecure", "--name", "ann"]).exception
    assert isinstance(refused, ConfigError)
    assert "needs the node's key" in str(refused)
