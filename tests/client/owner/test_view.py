"""Owner's view on real requests: journal entries before and after a reply is sent, pauses, connection."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from client.app import handle, open_session
from client.checks import check_client
from client.node.failures import NotAdmittedError, ServerAwayError
from client.owner.consent import read_consent
from client.owner.control import OwnerControl, RunningClient, pause
from client.owner.journal import RequestJournal, read_journal
from client.owner.status import read_status
from client.owner.view import OwnerView
from client.settings import ClientSettings
from common.config.parse import parse, to_json
from common.errors import RefusedError
from common.models import build_model, parameters
from common.tasks.registry import TASKS, demo_vocabulary
from common.wire.codec import encode
from common.wire.messages import ENROL, EVALUATE, TRAIN, EnrolRequest, EvaluateRequest, TrainRequest
from tests.support.toys import instruction


class _Owned:
    """A client with an owner's view, and requests to it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.lines: list[str] = []
        control = OwnerControl(folder, RunningClient(1, "ann", "localhost:9092", ""))
        self.view = OwnerView("localhost:9092", "ann", RequestJournal(folder), control, _session_of, self.lines.append)
        self.config = parse({"run-id": "toy", "method": "fedavg", "rounds": 5, **options})
        self.vocabulary = demo_vocabulary(self.config.task)
        self.context = Context(1, 77, {"state-dir": str(folder), "data": "demo:0-6", "name": "ann"}, RecordDict(), {})

    def ask(self, payload: Any, kind: str, *, acknowledge: bool = True) -> Message:
        message = instruction(77, encode(payload), kind)
        self.view.begin(message, self.context)
        reply = handle(message, self.context)
        self.view.finish(reply, 0.5)
        if acknowledge:
            self.view.acknowledge()
        return reply

    def enrol(self) -> str:
        reply = self.ask(EnrolRequest("toy", to_json(self.config), self.vocabulary.to_json()), ENROL)
        return str(reply.content["fedloom"]["enrolment"])

    @property
    def model(self) -> Any:
        spec = TASKS[self.config.task]
        return parameters(build_model(spec, self.config.task_run(spec, self.vocabulary)))

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [entry for entry in read_journal(self.folder) if "id" in entry]


def _session_of(context: Context) -> Any:
    return open_session(ClientSettings.from_context(context))


@pytest.fixture(autouse=True)
def _no_sessions_left() -> Iterator[None]:
    open_session.cache_clear()
    check_client.cache_clear()
    yield
    open_session.cache_clear()
    check_client.cache_clear()


def test_every_request_is_written_before_and_after_its_reply_was_received(tmp_path: Path) -> None:
    owned = _Owned(tmp_path, **{"federation.updates": "dense"})
    enrolment = owned.enrol()
    owned.ask(TrainRequest(1, enrolment, owned.model), TRAIN, acknowledge=False)
    before = owned.entries[-1]
    assert before["acknowledged"] == ""
    owned.view.acknowledge()
    after = owned.entries[-1]
    assert after["acknowledged"] > after["time"]
    assert before == {**after, "acknowledged": ""}
    assert (after["run"], after["round"], after["rounds"], after["asked"]) == ("toy", 1, 5, "train")
    assert (after["task"], after["method"], after["noised"]) == (owned.config.task, "fedavg", False)
    assert after["tensors"] == {f"update/{name}": list(array.shape) for name, array in owned.model.items()}
    assert set(after["clear"]) == {"loss", "examples"}
    assert after["clear"]["examples"] == after["records"] > 0
    assert after["sent_bytes"] > sum(array.nbytes for array in owned.model.values())
    assert after["epsilon_run"] is None


def test_privacy_costs_add_up_and_match_the_ledger(tmp_path: Path) -> None:
    owned = _Owned(tmp_path, **{"privacy.unit": "client", "privacy.epsilon": 10.0})
    enrolment = owned.enrol()
    for number in (1, 2):
        owned.ask(TrainRequest(number, enrolment, owned.model, cost=0.1), TRAIN)
    spent = [entry["epsilon_spent"] for entry in owned.entries if entry["asked"] == "train" and entry["acknowledged"]]
    last = owned.entries[-1]
    assert last["noised"]
    assert last["clear"] == {}  # loss and number of records are constants in a run with noise
    assert all(cost > 0 for cost in spent)
    assert sum(spent) == pytest.approx(10.0 - last["epsilon_left_run"])
    replayed = owned.ask(TrainRequest(2, enrolment, owned.model, cost=0.1), TRAIN)
    assert replayed.has_content()
    assert owned.entries[-1]["epsilon_spent"] == 0


def test_entries_have_the_contract_and_the_refusal_both_texts(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    owned.context.node_config["server"] = "SHA256:server"
    owned.enrol()
    first = owned.entries[-1]
    assert first["contract"] == read_consent(tmp_path / "ann").servers["SHA256:server"].agreed[-1].terms.hash
    owned.config = owned.config.model_copy(update={"rounds": 50})
    owned.ask(EnrolRequest("toy", to_json(owned.config), owned.vocabulary.to_json()), ENROL)
    assert owned.entries[-1]["contract"] == first["contract"]
    assert "length: agreed '5 rounds, " in owned.entries[-1]["refused"]
    run = read_status(tmp_path).clients[0].runs["toy"]
    assert run.contract == first["contract"]


def test_a_restarted_client_counts_the_cost_of_its_own_reply_only(tmp_path: Path) -> None:
    owned = _Owned(tmp_path, **{"privacy.unit": "client", "privacy.epsilon": 10.0})
    enrolment = owned.enrol()
    owned.ask(TrainRequest(1, enrolment, owned.model, cost=0.1), TRAIN)
    open_session.cache_clear()
    check_client.cache_clear()
    owned.ask(TrainRequest(2, enrolment, owned.model, cost=0.1), TRAIN)
    first, second = (owned.entries[k]["epsilon_spent"] for k in (-3, -1))
    assert 0 < second < first


def test_the_log_has_one_line_a_round(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    enrolment = owned.enrol()
    owned.ask(TrainRequest(1, enrolment, owned.model), TRAIN)
    owned.ask(EvaluateRequest(1, enrolment, owned.model, "test"), EVALUATE)
    enrolled, trained = owned.lines
    assert enrolled.startswith(f"run toy: takes part in task {owned.config.task} by method fedavg, 5 rounds. Left")
    assert trained.startswith("run toy round 1/5: trained on ")
    assert "model update, without noise, and " in trained


def test_a_refusal_is_written_with_its_reason_and_leaves_nothing(tmp_path: Path) -> None:
    owned = _Owned(tmp_path, method="ridge")
    owned.ask(EnrolRequest("toy", to_json(owned.config), owned.vocabulary.to_json()), ENROL)
    assert owned.entries[-1]["refused"].startswith("the policy does not allow sending statistics in plaintext")
    assert (owned.entries[-1]["sent_bytes"], owned.entries[-1]["clear"]) == (0, {})
    [line] = owned.lines
    assert line.startswith(
        "run toy refused: your policy does not allow sending statistics in plaintext (allow-counts = "
    )
    assert line.endswith(". Nothing left, nothing was spent")


def test_the_log_says_why_the_server_refuses_the_client_once(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    owned.enrol()
    for _ in range(2):
        refusal = "this key is registered as 'bob'; join with --name bob"
        owned.ask(EnrolRequest("toy", to_json(owned.config), owned.vocabulary.to_json(), refusal=refusal), ENROL)
    assert owned.lines[1:] == [
        "run toy refused: the server does not admit this client: this key is registered as 'bob'; join with --name bob."
        " Nothing left, nothing was spent"
    ]


def test_a_paused_client_answers_enrolments_alone(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    pause(tmp_path)
    owned.view.check(instruction(77, RecordDict(), ENROL))
    for kind in (TRAIN, EVALUATE, "query.names", "query.assign"):
        with pytest.raises(RefusedError, match="paused by its owner"):
            owned.view.check(instruction(77, RecordDict(), kind))


def test_requests_of_a_hostile_server_are_written_without_harm(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    owned.ask(EnrolRequest("../x\x1b[2J" + "y" * 5_000, "{" * 2_000, "[]"), ENROL)
    owned.ask(TrainRequest(2**40, "../../etc:0", {}), TRAIN)
    message = instruction(77, RecordDict(), TRAIN)
    owned.view.begin(message, owned.context)
    owned.view.finish(handle(message, owned.context), 0.1)
    assert all(entry["refused"] for entry in owned.entries)
    text = (tmp_path / "journal.jsonl").read_text()
    assert "\\u001b" not in text
    assert "y" * 300 not in text


def test_connection_changes_are_logged_in_the_owner_s_words(tmp_path: Path) -> None:
    owned = _Owned(tmp_path)
    view = owned.view
    view.away(ServerAwayError("no server at localhost:9092 (refused); start it"))
    view.connected(7)
    for _ in range(12):
        view.away(ServerAwayError("localhost:9092: gone"))
    view.connected(7)
    view.away(NotAdmittedError("localhost:9092 no longer recognizes this node"))
    view.left()
    texts = [line.partition(", since")[0] for line in owned.lines]
    assert texts == [
        "no server at localhost:9092 (refused); start it; waiting (tried once",
        "connected to localhost:9092 as ann",
        "localhost:9092 does not answer; waiting (tried once",
        "localhost:9092 does not answer; waiting (tried 3 times",
        "localhost:9092 does not answer; waiting (tried 10 times",
        "connected again to localhost:9092 as ann",
        "localhost:9092 no longer recognizes this node; waiting (tried once",
        "left localhost:9092",
    ]
    changes = [entry["connection"] for entry in read_journal(tmp_path)]
    assert changes == ["away", "connected", "away", "connected", "away", "left"]
