"""Commands `invite`, `join --invite` and `nodes`."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.node.failures import Server
from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.tasks.ratings.vocabulary import ProductCatalogue
from deploy.cli.app import app
from deploy.federation.status import FILE, store_order
from deploy.keys.certificates import make_authority
from deploy.keys.invitation import Invitation, read_invitation
from deploy.keys.nodes import TOKENS, list_nodes, load_public_key
from tests.support.invitations import make_toy_invitation, write_changed

pytestmark = pytest.mark.usefixtures("here")

HOME = Path(".fedloom/server")
NODES = HOME / "nodes"


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def refusal(*words: str) -> str:
    error = command(*words).exception
    assert isinstance(error, ConfigError), error
    return str(error)


@pytest.fixture
def certificate(here: Path) -> None:
    assert command("keys", "server", "--name", "train.example.org", "--name", "10.0.0.7").exit_code == 0


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """Return the servers that `join` would connect to; nothing is connected."""
    servers: list[Server] = []

    def resident(app: object, server: Server, **rest: object) -> None:
        servers.append(server)

    monkeypatch.setattr("client.node.resident.run_resident", resident)
    monkeypatch.setattr("client.node.resident.leave_on_signals", lambda stop: None)
    return servers


@pytest.mark.usefixtures("certificate")
class TestInvite:
    def test_a_vocabulary_that_clients_find_is_named(self) -> None:
        store_order(HOME, parse({"task": "sessions", "catalogue": "federated"}), 19_701)
        result = command("invite")
        assert "each sends names in its data, if its policy has allow-names" in result.stderr
        assert read_invitation(Path("train.example.org.fedloom")).catalogue == {}
        refused = refusal("invite", "--task", "traffic", "--catalogue", "federated", "--out", "other.fedloom")
        assert refused.startswith("catalogue=federated does not apply to the variables of task 'traffic'")

    def test_an_invitation_describes_the_stored_run_of_the_server(self) -> None:
        store_order(HOME, parse({"task": "sessions", "rounds": 7, "privacy.unit": "client"}), 19_701)
        done = command("invite", "--contact", "ops@example.org", "--json")
        assert done.exit_code == 0, done.exception
        invitation = read_invitation(Path("train.example.org.fedloom"))
        assert (invitation.server, invitation.task, invitation.terms.rounds) == (
            "train.example.org:19701",
            "sessions",
            7,
        )
        assert (invitation.terms.unit, invitation.terms.epsilon) == ("client", 10.0)
        assert invitation.ca_pem == (HOME / "ca.pem").read_text()
        assert json.loads(done.stdout)["code"] == invitation.code
        assert f"check code  {invitation.code}" in done.stderr

    def test_options_describe_another_run(self) -> None:
        Path("names.json").write_text(ProductCatalogue(items=("tea", "milk")).to_json())
        words = ("--task", "ratings", "--rounds", "4", "--epsilon", "2", "--catalogue", "names.json", "--name", "shops")
        done = command("invite", "--server", "10.0.0.7:9000", "--out", "a.fedloom", *words)
        assert done.exit_code == 0, done.exception
        invitation = read_invitation(Path("a.fedloom"))
        assert (invitation.name, invitation.host, invitation.catalogue["items"]) == (
            "shops",
            "10.0.0.7",
            ["tea", "milk"],
        )
        assert invitation.terms.rows()["privacy"].startswith("noise on everything that a client sends: ε = 2")

    def test_promised_helpers_are_terms_by_their_keys(self) -> None:
        keys = ["SHA256:" + letter * 43 for letter in "ba"]
        promised = [word for key in keys for word in ("--helper", key)]
        done = command("invite", "--task", "rules", "--method", "fedavg", *promised)
        assert done.exit_code == 0, done.exception
        terms = read_invitation(Path("train.example.org.fedloom")).terms
        assert (terms.trust, terms.helpers, terms.plaintext) == (("helpers",), tuple(sorted(keys)), ())
        assert terms.min_sum == 5
        assert "SHA256:aaaa" in done.stderr
        wrong = refusal("invite", "--task", "rules", "--method", "fedavg", "--helper", "works-council", "--out", "x")
        assert "invalid invitation: 'helpers.0' String should match pattern" in wrong

    def test_the_file_can_be_piped(self) -> None:
        done = command("invite", "--task", "rules", "--out", "-")
        assert Invitation.model_validate_json(done.stdout).task == "rules"

    def test_each_named_client_has_an_invitation_that_admits_it(self, joined: list[Server]) -> None:
        words = ("--task", "rules", "--client", "ann", "--client", "bob", "--home", str(HOME))
        done = command("invite", *words, "--json")
        assert done.exit_code == 0, done.exception
        files = {name: f"train.example.org-{name}.fedloom" for name in ("ann", "bob")}
        assert json.loads(done.stdout)["files"] == files
        ann, bob = (read_invitation(Path(file)) for file in files.values())
        assert (ann.client, ann.code, ann.server) == ("ann", bob.code, bob.server)
        assert ann.token != bob.token
        stored = (NODES / TOKENS).read_text()
        assert all(name in stored for name in files)
        assert ann.token not in stored + done.stderr + done.stdout
        for refused in (("--client", "ann"), ("--client", "../x"), ("--client", "a", "--client", "b", "--out", "x")):
            refusal("invite", "--task", "rules", *refused)
        assert (NODES / TOKENS).read_text() == stored

        join = ("join", "--invite", files["bob"], "--data", "demo:0-3", "--state-dir", "state")
        assert "remove --name carl" in refusal(*join, "--name", "carl")
        at_client = command(*join, "--code", bob.code)
        assert at_client.exit_code == 0, at_client.exception
        assert "fedloom nodes add" not in at_client.stderr
        assert bob.token not in at_client.stderr
        [server] = joined
        assert (server.name, server.token, server.key_file) == ("bob", bob.token, Path("state/node.key"))

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            ((), "no run is stored in .fedloom/server; start fedloom serve"),
            (
                ("--task", "rules", "--server", "other.org:1"),
                "not valid for 'other.org'; run fedloom keys server --renew",
            ),
            (("--task", "rules", "--server", "https://train.example.org:1"), "without a scheme"),
            (("--task", "rules", "--server", "train.example.org:x"), "is not HOST:PORT"),
            (("--task", "rules", "--name", "a\x1bb"), "control characters"),
            (("--task", "rules", "--home", "nowhere"), "server.pem is missing; create it with fedloom keys server"),
        ],
    )
    def test_a_wrong_invitation_is_not_written(self, words: tuple[str, ...], reason: str) -> None:
        assert reason in refusal("invite", *words)
        assert [*Path().glob("?*.fedloom")] == []

    def test_a_vocabulary_of_another_task_is_refused(self) -> None:
        Path("names.json").write_text(ProductCatalogue(items=("tea", "milk")).to_json())
        assert isinstance(command("invite", "--task", "rules", "--catalogue", "names.json").exception, DataError)

    def test_a_damaged_order_is_refused(self) -> None:
        (HOME / FILE).write_text("port = ")
        assert "order.toml cannot be read; remove it" in refusal("invite")

    def test_a_file_is_not_overwritten(self) -> None:
        assert command("invite", "--task", "rules").exit_code == 0
        assert "exists" in refusal("invite", "--task", "rules")


def join(*words: str, state: str = "state") -> Result:
    return command("join", "--invite", "i.fedloom", "--data", "demo:0-3", "--state-dir", state, *words)


class TestJoin:
    @pytest.fixture
    def invitation(self, here: Path) -> Invitation:
        invitation = make_toy_invitation(here / "home")
        invitation.write(here / "i.fedloom")
        return invitation

    def test_the_owner_sees_the_invitation_and_the_line_for_the_server(
        self, invitation: Invitation, joined: list[Server]
    ) -> None:
        done = join("--name", "shop-3", "--code", invitation.code.lower())
        assert done.exit_code == 0, done.exception
        assert all(line in done.stderr for line in invitation.lines())
        [line] = [line for line in done.stderr.splitlines() if "fedloom nodes add" in line]
        admitted = command(*line.split()[1:])
        assert admitted.exit_code == 0, admitted.exception
        [entry] = list_nodes(NODES)
        assert entry.name == "shop-3"
        assert [(server.address, server.ca.decode()) for server in joined] == [(invitation.server, invitation.ca_pem)]
        public = load_public_key(Path("state/node.key.pub"))
        assert joined[0].key is not None
        assert joined[0].key.public_key() == public
        assert stat.S_IMODE(Path("state/node.key").stat().st_mode) == 0o600

    def test_the_key_is_kept_from_start_to_start(self, invitation: Invitation, joined: list[Server]) -> None:
        assert [join().exit_code, join().exit_code] == [0, 0]
        keys = [server.key.public_key() for server in joined if server.key]
        assert keys[0] == keys[1]

    def test_another_code_ends_before_any_key_is_made(self, invitation: Invitation, joined: list[Server]) -> None:
        error = join("--code", "AAAA-BBBB-CCCC-DDDD").exception
        assert isinstance(error, ConfigError)
        assert f"is {invitation.code}, not 'AAAA-BBBB-CCCC-DDDD'" in str(error)
        assert (joined, Path("state").exists()) == ([], False)

    def test_another_authority_for_the_same_server_is_refused_with_both_fingerprints(
        self, invitation: Invitation, joined: list[Server], here: Path
    ) -> None:
        assert join().exit_code == 0
        swapped = make_authority(here / "swapped").ca.read_text()
        write_changed(invitation, here / "i.fedloom", ca_pem=swapped, server="TRAIN.example.org:9999")
        error = join().exception
        assert isinstance(error, ConfigError)
        other = invitation.model_copy(update={"ca_pem": swapped})
        assert f"SHA-256 {other.authority}, before {invitation.authority}" in str(error)
        assert len(joined) == 1
        assert join(state="another").exit_code == 0

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (("--server", "x:1"), "--server contradicts --invite"),
            (("--ca", "home/ca.pem"), "--ca contradicts --invite"),
            (("--insecure",), "--insecure contradicts --invite"),
            (("--adapt", "run"), "--invite contradicts --adapt"),
            (("--task", "sessions"), "the invitation is to task rules; remove --task sessions"),
        ],
    )
    def test_options_that_contradict_it_are_refused(
        self, invitation: Invitation, joined: list[Server], words: tuple[str, ...], reason: str
    ) -> None:
        assert reason in str(join(*words).exception)
        assert joined == []

    def test_a_code_needs_an_invitation(self) -> None:
        assert "--code needs --invite FILE" in refusal("join", "--server", "x:1", "--code", "AAAA")

    def test_it_does_not_widen_the_policy(self, joined: list[Server], here: Path, monkeypatch: Any) -> None:
        make_toy_invitation(here / "home").write(here / "i.fedloom")
        (here / "policy.toml").write_text("max-epsilon = 1.0\n")
        assert join("--policy", "policy.toml").exit_code == 0
        assert (here / "policy.toml").read_text() == "max-epsilon = 1.0\n"
