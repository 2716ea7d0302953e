"""ClientApp: every message has an answer, and answers contain no private data."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from flwr.app import Context, Message, RecordDict

from client.app import handle, open_session
from client.checks import check_client, read_about
from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger
from client.settings import ClientSettings
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Ratings, write_raters
from common.config.parse import parse, to_json
from common.errors import ConfigError, DataError, RefusedError, StateError, VocabularyError, WireError, public_reason
from common.privacy.mechanisms import Gaussian
from common.privacy.options import PrivacyOptions
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.ratings.vocabulary import demo_products
from common.tasks.rules.vocabulary import demo_catalogue
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, NAMES, REFUSED, EnrolReply, EnrolRequest, NamesRequest
from tests.support.toys import instruction

INVITATION = EnrolRequest("toy", to_json(parse({"run-id": "toy"})), demo_catalogue().to_json())


@pytest.fixture(autouse=True)
def _no_sessions_left() -> Iterator[None]:
    open_session.cache_clear()
    check_client.cache_clear()
    yield
    open_session.cache_clear()
    check_client.cache_clear()


def context(state: Path, **node_config: str) -> Context:
    given = {"state-dir": str(state), "data": "demo:0-6", "name": "ann", **node_config}
    return Context(1, 77, given, RecordDict(), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [
        DataError("Grandma's lamp is unknown", "/home/ann/homes.csv", 3),
        VocabularyError("Grandma's lamp"),
        StateError("/home/ann/.fedloom is no client state"),
        ConfigError("policy /home/ann/policy.toml: secret"),
        KeyError("Grandma's lamp"),
        OSError("/home/ann/homes.csv"),
    ],
)
def test_private_texts_are_never_sent(error: Exception) -> None:
    reason = public_reason(error)
    assert reason.endswith("; see the client's log")
    assert not any(secret in reason for secret in ("home", "Grandma", "secret", ".fedloom"))


@pytest.mark.parametrize("error", [RefusedError("method 'x' is not allowed"), WireError("update: NaN")])
def test_texts_without_private_data_are_sent(error: Exception) -> None:
    assert public_reason(error) == str(error)


def test_an_invitation_is_answered(tmp_path: Path) -> None:
    reply = handle(instruction(77, encode(INVITATION), ENROL), context(tmp_path))
    enrolled = decode(EnrolReply, reply.content)
    assert (enrolled.client, enrolled.enrolment[:4]) == ("ann", "toy:")
    assert 0 < enrolled.examples <= 6


def test_a_broken_data_file_is_refused_and_its_details_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "homes.csv"
    data.write_text("user_id,secret\nann,1\n")
    with caplog.at_level(logging.ERROR, "fedloom.client"):
        reply = handle(instruction(77, encode(INVITATION), ENROL), context(tmp_path, data=str(data)))
    assert (reply.error.code, reply.error.reason) == (
        REFUSED,
        "this client's data do not match the run's vocabulary or format; see the client's log",
    )
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"query.enrol: {reply.error.reason}: {data}, line 1")


def test_notes_on_data_and_options_are_logged_for_the_owner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "uk.csv"
    data.write_text("user,item\nann,x\nann,y\nbob,x\nbob,y\nbob,z\n")
    options = {"tasks.markets.co-rating": 3, "tasks.markets.width": 8}
    config = parse({"run-id": "toy", "task": "markets", "method": "fedavg", **options})
    invitation = EnrolRequest("toy", to_json(config), MarketCatalogue(items=("x", "y", "z")).to_json())
    with caplog.at_level(logging.WARNING, "fedloom.client"):
        reply = handle(instruction(77, encode(invitation), ENROL), context(tmp_path, data=str(data)))
    assert decode(EnrolReply, reply.content).examples == 0
    assert f"{data}: a pair of items needs 3 users of both" in caplog.text


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (encode(NamesRequest("toy:0")), NAMES, "not enrolled in this run"),
        (encode(NamesRequest("toy:0")), ENROL, "expected EnrolRequest, got 'NamesRequest'"),
        (encode(NamesRequest("toy:0")), "query.strange", "unsupported message type 'query.strange'"),
        (RecordDict(), "train", "expected TrainRequest, got"),
    ],
)
def test_a_request_that_cannot_be_met_is_answered_with_the_reason(
    content: RecordDict, kind: str, reason: str, tmp_path: Path
) -> None:
    reply = handle(instruction(77, content, kind), context(tmp_path))
    assert reply.has_error()
    assert reply.error.reason.startswith(reason)


def test_invalid_settings_are_answered_with_the_reason(tmp_path: Path) -> None:
    bad = handle(instruction(77, encode(INVITATION), ENROL), context(tmp_path, policy=str(tmp_path / "none.toml")))
    assert bad.error.reason == "this client is not configured correctly; see the client's log"


def test_other_data_have_other_state(tmp_path: Path) -> None:
    folders = set()
    for data in ("demo:0-6", "demo:6-12"):
        message: Message = instruction(77, encode(INVITATION), ENROL)
        assert handle(message, context(tmp_path, data=data)).has_content()
        folders |= {path.relative_to(tmp_path).parts[:2] for path in tmp_path.glob("ann/*/toy/enrolment.json")}
    assert len(folders) == 2


def test_the_origin_of_the_data_is_stored_with_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("homes.csv").write_text("")
    for name, data, located in (("ann", "homes.csv", str(tmp_path / "homes.csv")), ("bob", "demo:0-6", "demo:0-6")):
        handle(instruction(77, encode(INVITATION), ENROL), context(tmp_path / "state", data=data, name=name))
        [folder] = (tmp_path / "state" / name).iterdir()
        assert read_about(folder) == {"data": located, "part": [0, 1], "seed": 0}


@pytest.mark.parametrize("later", [{}, {"shard": "1/2"}])
def test_renamed_and_repartitioned_data_have_one_budget(later: dict[str, str], tmp_path: Path) -> None:
    """A ledger is of the data; what part of them a client takes, and which state it keeps, is another matter."""
    write_raters(tmp_path / "r.csv", Ratings(demo_raters(0, 8, 0), demo_products()))

    def ledger(name: str, **options: str) -> Ledger:
        open_session.cache_clear()
        check_client.cache_clear()
        settings = ClientSettings.from_node(
            {"data": str(tmp_path / name), "state-dir": str(tmp_path / "s"), **options}, "ann"
        )
        return open_session(settings).releaser.budget.ledger(PrivacyOptions(unit="client"))

    first = ledger("r.csv", shard="0/2")
    first.release(Slot("run", 1), first.terms(Gaussian(0.1, 1.0)), lambda: b"noise")
    first.close()
    (tmp_path / "r.csv").rename(tmp_path / "s.csv")
    again = ledger("s.csv", **later)
    assert again.spent() == pytest.approx(0.1)
    again.close()
