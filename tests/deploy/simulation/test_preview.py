"""Preview of a client: every field of the messages of one real round, without a connection or a trace."""

import json
import re
import socket
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import pytest
from flwr.app import ConfigRecord, RecordDict
from typer.testing import CliRunner

from client.checks import write_about
from client.data.dataset import fingerprint
from client.data.read import read_all
from client.owner.policy import Policy
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import open_ledger
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Ratings, write_raters
from common.privacy.accounts import Pure
from common.privacy.mechanisms import Laplace
from common.tasks.ratings.vocabulary import demo_products
from common.tasks.registry import TASKS
from common.wire.codec import arrays_of, decode
from common.wire.encodings import CODES
from common.wire.messages import TrainReply
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.federation.request import resolve
from deploy.simulation.preview import Preview, preview_messages
from tests.support.invitations import make_toy_invitation

SMALL = {"federation.min-clients": 1, "federation.wait": 1}
OPEN = Policy(allow_counts="clear", share_metrics="always")


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise AssertionError("a preview opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def preview(task: str, policy: Policy = OPEN, **options: Any) -> Preview:
    config = resolve(RunRequest(task=task, **options), SMALL)
    return preview_messages(config, read_all(config.task, "demo:0-4"), policy)


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["preview", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_shows_what_a_run_without_noise_would_send(task: str) -> None:
    found = preview(task)
    assert found.failure == ""
    assert found.refusals == ()
    kinds = [message.kind for message in found.messages]
    assert kinds[0] == "enrol"
    assert "train" in kinds
    trained = found.messages[kinds.index("train")]
    assert {field.protection for field in trained.fields if field.shape} == {"exact"}
    assert {field.protection for field in trained.fields if not field.shape} == {"in plaintext"}
    for field in trained.fields:
        assert field.norm_before == field.norm_after


def test_names_that_clients_would_send_for_a_vocabulary_are_shown(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('allow-names = "clear"\nallow-counts = "clear"\n')
    words = ("--data", "demo:0-4", "--task", "sessions", "--catalogue", "federated")
    found = json.loads(run(*words, "--policy", policy, "--json"))
    assert (found["failure"], found["refused"]) == ("", [])
    kinds = [message["kind"] for message in found["messages"]]
    assert kinds[:4] == ["enrol", "names", "names", "enrol"]
    hashes, names = (next(f for f in m["fields"] if f["name"] == "part/values") for m in found["messages"][1:3])
    assert hashes["shape"][0] == names["shape"][0] > 100
    policy.write_text('allow-names = "never"\nallow-counts = "clear"\n')
    assert "refused (enrol): the policy does not allow sending names" in run(*words, "--policy", policy)
    noised = run(*words, "--epsilon", 8, "--set", "privacy.accept-noise=true")
    assert "hashes of at most 64 names in these data, with noise of helpers for 10% of" in noised


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_shows_clip_noise_and_cost_of_a_run_with_noise(task: str) -> None:
    found = preview(task, epsilon=4.0)
    [*_, trained] = [message for message in found.messages if message.kind == "train"]
    arrays = [field for field in trained.fields if field.shape]
    assert {field.protection for field in arrays} <= {"noised", "clipped, noised"}
    assert all(field.norm_before is not None and field.norm_before != field.norm_after for field in arrays)
    assert {field.protection for field in trained.fields if field.name in ("loss", "examples")} == {"constant"}
    assert found.epsilon is not None
    assert 0 < found.epsilon.run <= 4.0
    assert found.epsilon.run_limit == 4.0


def test_codes_of_rounded_updates_have_no_norm() -> None:
    found = preview("rules", sets=["federation.encoding=int8"])
    [trained] = [message for message in found.messages if message.kind == "train"]
    codes = [field for field in trained.fields if field.name.endswith(CODES)]
    assert {(field.type, field.protection, field.norm_before, field.norm_after) for field in codes} == {
        ("int8", "exact", None, None)
    }


def test_noise_on_records_has_no_exact_upload() -> None:
    found = preview("rules", method="fedavg", epsilon=8.0, sets=["privacy.unit=record"])
    [trained] = [message for message in found.messages if message.kind == "train"]
    assert {(field.protection, field.norm_before) for field in trained.fields if field.shape} == {("noised", None)}


def test_saved_bytes_are_the_content_of_the_messages(tmp_path: Path) -> None:
    found = json.loads(
        run(
            "--task", "ratings", "--method", "fedavg", "--data", "demo:0-4", "--json", "--save", tmp_path / "x.zip"
        ).splitlines()[-1]
    )
    assert (tmp_path / "x.zip").stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        names = archive.namelist()
        content = archive.read("02-train.bin")
    assert names == ["01-enrol.bin", "02-train.bin", "03-evaluate.bin"]
    record = RecordDict({"fedloom": ConfigRecord.inflate(content)})
    reply = decode(TrainReply, record)
    trained = found["messages"][1]
    assert trained["bytes"] == len(content)
    shapes = {field["name"]: field["shape"] for field in trained["fields"] if field["shape"]}
    assert shapes == {name: list(array.shape) for name, array in arrays_of(record).items()}
    assert [field["examples"] for field in trained["fields"] if field["name"] == "loss"] == [[reply.loss]]


def test_refusals_are_named_before_the_messages_without_the_policy() -> None:
    found = preview("ratings", Policy(require_noise=True))
    assert [(one.kind, one.refused.partition(";")[0]) for one in found.refusals] == [
        ("enrol", "the policy requires differential privacy")
    ]
    assert "train" in [message.kind for message in found.messages]
    found = preview("ratings", Policy(max_epsilon_per_round=1.0), epsilon=4.0, rounds=1)
    [refusal] = found.refusals
    assert (refusal.kind, refusal.refused) == ("train", "asked for ε 4 in one round, this client's limit is 1")


def test_metrics_stay_at_home_where_the_policy_keeps_them() -> None:
    found = preview("ratings", Policy(share_metrics="never"), method="fedavg")
    [evaluated] = [message for message in found.messages if message.kind == "evaluate"]
    assert [field.name for field in evaluated.fields] == ["round"]


def test_ledger_and_state_folder_are_byte_identical_afterwards(tmp_path: Path) -> None:
    data, state = tmp_path / "ratings.csv", tmp_path / "state"
    write_raters(data, Ratings(demo_raters(0, 4, 0), demo_products()))
    write_about(state / "ann", {"data": str(data)})
    ledger = open_ledger(str(data), state, fingerprint(str(data), (0, 1), 0), "client", Pure(), 10.0, 1e-5)
    ledger.release(Slot("earlier", 1), ledger.terms(Laplace(0.4, 1.0)), lambda: b"noise")
    ledger.close()

    def contents() -> dict[str, tuple[bytes, int]]:
        return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*") if p.is_file()}

    before = contents()
    text = run("--task", "ratings", "--data", data, "--epsilon", 8, "--state-dir", state)
    assert contents() == before
    assert "this round costs ε 8 of the run's ε 8 (unit client)" in text
    assert "ε 0.4 spent of 10; ε 8.4 after the whole run" in text
    text = run("--task", "ratings", "--data", data, "--epsilon", 9.9, "--state-dir", state)
    assert "more than the limit: the client stops when it is reached" in text
    assert contents() == before


def test_a_wrong_option_or_file_is_answered_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("delta = 1e-5\nmax-epsilo = 1\n")
    for words, reason in (
        (["--policy", str(tmp_path / "policy.toml")], "policy.toml, line 2: unknown option 'max-epsilo'"),
        (["--task", "rule"], "did you mean 'rules'"),
        (["--data", str(tmp_path / "none.csv")], "no such file|No such file"),
    ):
        result = CliRunner().invoke(app, ["preview", *words])
        assert result.exception is not None
        assert any(part in str(result.exception) for part in reason.split("|")), result.exception


def test_an_invitation_names_task_method_privacy_and_vocabulary(tmp_path: Path) -> None:
    invitation = make_toy_invitation(tmp_path / "home", **{"privacy.unit": "client", "privacy.epsilon": 7})
    invitation.write(tmp_path / "one.fedloom")
    document = json.loads(run("--invite", tmp_path / "one.fedloom", "--data", "demo:0-20", "--json").splitlines()[-1])
    assert "noised" in json.dumps(document)
    result = CliRunner().invoke(app, ["preview", "--invite", str(tmp_path / "one.fedloom"), "--task", "rules"])
    assert str(result.exception) == "--task contradicts --invite, which names it; remove one of them"


def test_it_begins_with_three_sentences_and_details_follow_on_demand(tmp_path: Path) -> None:
    words = ("--task", "rules", "--method", "fedrule", "--data", "demo:0-12")
    text = run(*words)
    first, second, third, *_ = text.splitlines()
    [numbers] = re.findall(
        r"What leaves: a change of the model, ([\d,]+) numbers in each of 30 rounds, and in plaintext", first
    )
    assert int(numbers.replace(",", "")) > 1000
    assert second.startswith("What it may reveal: these values are exact")
    assert third.startswith("Noise: none")
    assert "norm before" not in text
    assert "norm before" in run(*words, "--details")
    (tmp_path / "policy.toml").write_text('share-metrics = "without_noise"')
    private = ("--epsilon", 8, "--set", "privacy.accept-noise=true", "--policy", tmp_path / "policy.toml")
    noised = run(*words, *private).splitlines()
    assert "bounded for each client by ε = 8, a reasonable guarantee" in noised[1]
    assert noised[2].endswith("hardly anything of one reply is yours.")
    assert noised[0].endswith(" numbers in each of 30 rounds."), "metrics stay here"
    solved = run("--task", "rules", "--method", "ridge", "--data", "demo:0-12").splitlines()
    [leaves] = [line for line in solved if line.startswith("What leaves: statistics of your data, ")]
    assert "numbers in the first of 3 rounds, and in plaintext your number of records" in leaves
    assert "loss" not in leaves
