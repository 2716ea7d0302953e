"""Heads of privacy ledgers that the server stores during a run, so that a ledger lost after it is missed."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from flwr.app import Message
from flwr.serverapp import Grid

from client.app import open_session
from client.hub.hub import Hub
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.ledger import Ledger
from client.session import Session
from client.settings import ClientSettings
from client.tasks.rules.data.homes import write_homes
from common.config.run import RunConfig
from common.errors import QuorumError
from common.node_names import NamedKey, write_names
from common.options import Scalar
from common.privacy.claims import COPIES
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.clients.ledger_heads import Heads, StoredHead, read_heads
from server.exchange.relays import HostedClient
from server.planning.planner import RoundDecision
from server.record.events import Refusal
from server.record.folder import Checkpoint, Checkpoints, RunDirectory
from server.record.journal import Journal
from server.record.result import Result
from server.round.state import RunState
from server.run import OnRound, run
from studies.lies.liars import Lie, LyingGrid, trained
from tests.server.clients.test_node_directory import MARKS, NODES
from tests.support.hubs import NodeGrid, direct, nodes_of
from tests.support.owners import PLANNERS, Owners, noisy, owners, total_of
from tests.support.sensors import rounds_of
from tests.support.sum_runs import POLICY, SumFederation, noised
from tests.support.toys import toy_dataset

TWO = {"rounds": 2, "federation__min_clients": 2}


def keyed_run(
    grid: Grid,
    config: RunConfig,
    folder: Path,
    keys: dict[int, int] | None = None,
    on_round: OnRound = lambda state: None,
) -> Result:
    """Run with clients whose nodes have keys: by default node 1 the first one and node 2 the second one."""
    nodes = [HostedClient(node, 0, "", NODES[key - 1].public_key) for node, key in (keys or {1: 1, 2: 2}).items()]
    grid.__dict__["get_nodes"] = lambda: nodes
    (folder / "nodes").mkdir(exist_ok=True, parents=True)
    return run(grid, config, folder / "runs", folder / "nodes", on_round)


def stored(folder: Path) -> Heads:
    return read_heads(folder / "nodes")


def heads_of(people: Owners | SumFederation, config: RunConfig, task: str = "rules") -> Heads:
    """Return the true heads of the clients that have keys."""
    ledgers = {node: people.sessions[node].releaser.budget.ledger(config.privacy).head() for node in MARKS}
    return {MARKS[n]: {head.lineage: StoredHead(task, head.sequence, head.link)} for n, head in ledgers.items()}


@pytest.mark.parametrize(
    ("method", "releases"), [("fedavg", 2), ("bgtplanner", 1), ("ifca", 4)], ids=["plain", "planner", "assignments"]
)
def test_the_server_has_the_head_after_every_reply_of_a_run(method: str, releases: int, tmp_path: Path) -> None:
    people, config = owners(2), noisy(tmp_path, method, **TWO, **PLANNERS.get(method, {}))
    assert keyed_run(InProcessGrid(people.sessions, 1), config, tmp_path).status == "completed"
    assert stored(tmp_path) == heads_of(people, config)
    assert {head.sequence for of in stored(tmp_path).values() for head in of.values()} == {releases}


def test_the_server_has_the_heads_of_clients_in_secure_sums(tmp_path: Path) -> None:
    people = SumFederation(tmp_path, clients=3, policy=POLICY.model_copy(update={"share_metrics": "summed"}))
    config = noised(5000.0, rounds=2, **{"privacy__metric-share": 0.2})
    keyed_run(people.grid, config, tmp_path)
    assert stored(tmp_path) == heads_of(people, config)
    releases = {head.sequence for of in stored(tmp_path).values() for head in of.values()}
    assert releases == {3}, "the metrics of the final model are one, too"


@pytest.mark.parametrize("answer", ["sums", "replies"])
def test_the_server_has_the_head_of_each_client_of_a_hub(answer: str, tmp_path: Path) -> None:
    people, config = owners(5), noisy(tmp_path, rounds=2, federation__answer=answer)
    hub = nodes_of(people, together=2)[8]
    assert isinstance(hub, Hub)
    (tmp_path / "nodes").mkdir()
    write_names(tmp_path / "nodes", {"a": NamedKey(fingerprint=MARKS[1], clients=2)})
    keyed_run(NodeGrid({8: hub.respond}), config, tmp_path, {8: 1})
    found = {mark: head.sequence for mark, of in stored(tmp_path).items() for head in of.values()}
    assert found == {f"{MARKS[1]}#a/client-{k}": 2 for k in (0, 3)}


def test_the_heads_are_stored_before_the_checkpoint_of_their_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, seen = Checkpoints.save, dict[int, set[int]]()

    def watched(self: Checkpoints, checkpoint: Checkpoint, best: int) -> None:
        heads = {head.sequence for of in stored(tmp_path).values() for head in of.values()}
        seen.setdefault(checkpoint.round, heads)
        save(self, checkpoint, best)

    monkeypatch.setattr(Checkpoints, "save", watched)
    keyed_run(InProcessGrid(owners(2).sessions, 1), noisy(tmp_path, "fedavg", **TWO), tmp_path)
    assert seen == {0: set(), 1: {1}, 2: {2}}


def test_a_fresh_ledger_after_the_only_run_of_its_key_is_refused(tmp_path: Path) -> None:
    people, config = owners(2), noisy(tmp_path, "fedavg", **TWO)
    keyed_run(InProcessGrid(people.sessions, 1), config, tmp_path)
    again = config.model_copy(update={"run_id": "again"})
    with pytest.raises(QuorumError, match=r"had ledger .* with 2 rows: its data could be spent twice"):
        keyed_run(InProcessGrid({**people.sessions, 1: owners(2).sessions[1]}, 1), again, tmp_path)
    [refusal] = [one for one in RunDirectory(tmp_path / "runs", "again").events() if isinstance(one, Refusal)]
    assert refusal.client == "client-0"
    assert refusal.reason.endswith(
        "restore the newest ledger, or ask the server's owner to run fedloom nodes accept-ledger"
    )


def test_a_resumed_run_accepts_the_ledgers_that_it_filled(tmp_path: Path) -> None:
    people, config = owners(2), noisy(tmp_path, "fedavg", **TWO)
    keyed_run(InProcessGrid(people.sessions, 1), config, tmp_path)
    more = config.model_copy(update={"rounds": 3, "resume": True})
    assert keyed_run(InProcessGrid(people.sessions, 1), more, tmp_path).status == "completed"
    assert stored(tmp_path) == heads_of(people, config)


def test_a_server_restored_from_an_older_backup_pays_again_for_what_it_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, config = owners(2), noisy(tmp_path, "fedavg", rounds=6, federation__min_clients=2)
    server, restored, decided = tmp_path / "server", tmp_path / "restored", Journal.record_decision

    def back_up(journal: Journal, decision: RoundDecision) -> None:
        decided(journal, decision)
        if decision.number == 3:
            shutil.copytree(server, restored)

    def on_round(state: RunState) -> None:
        if state.round == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "record_decision", back_up)
    with pytest.raises(KeyboardInterrupt):
        keyed_run(InProcessGrid(people.sessions, 1), config, server, on_round=on_round)
    monkeypatch.undo()
    assert people.spent(config) == pytest.approx(dict.fromkeys(("client-0", "client-1"), 4 / 6 * total_of(config)))
    resumed = config.model_copy(update={"resume": True})
    result = keyed_run(InProcessGrid(people.sessions, 1), resumed, restored)
    assert result.status == "completed"
    assert result.reason == "ended early: no client can pay another round"
    assert [event.round for event in rounds_of(restored / "runs")] == [1, 2, 3, 4, 5]
    for session in people.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        # the bytes of round 3 had been acknowledged and are released anew; those of round 4 are sent again
        assert [entry.slot.round for entry in entries] == [1, 2, 3, 4, 3, 5]
    assert people.spent(config) == pytest.approx(dict.fromkeys(("client-0", "client-1"), total_of(config)))
    assert stored(restored) == heads_of(people, config), "the older heads have caught up"


BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "none": (lambda head: "", "is not a head of a privacy ledger"),
    "another form": (lambda head: "\x1b[2J", "is not a head of a privacy ledger"),
    "an older one": (lambda head: f"{head.split(':')[0]}:0:", "has 0 rows and had 1"),
    "another one": (lambda head: f"{'ab' * 16}:9:x", "is new, and this key had ledger"),
}


def once(lie: Lie) -> Lie:
    """Return the lie of the second reply alone."""
    replies = iter([lambda reply: reply, lie])
    return lambda reply: next(replies, lambda reply: reply)(reply)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_head_makes_a_reply_unusable_and_its_sender_is_named(bad: str, tmp_path: Path) -> None:
    change, reason = BAD[bad]
    people, config = owners(2), noisy(tmp_path, "fedavg", rounds=3, federation__min_clients=2)
    config = config.model_copy(update={"federation": config.federation.model_copy(update={"min_replies": 1})})
    keyed_run(LyingGrid(people.sessions, 1, TRAIN, once(trained(ledger=change))), config, tmp_path)
    _, second, third = rounds_of(tmp_path / "runs")
    assert list(second.refused) == ["client-0"]
    assert reason in second.refused["client-0"]
    assert "\x1b" not in second.refused["client-0"]
    assert third.answered == 2
    assert stored(tmp_path) == heads_of(people, config)


DATA, STATE, LEDGER = "homes.csv", "state", ".homes.csv.fedloom-ledger"

SAME, NEW = 1, 2  # keys of test_node_directory

Accident = Callable[[Path, Path, Path], None]
"""Makes the folder after the accident from those before it: the newest one and its backup."""


def copy_the_data(newest: Path, backup: Path, after: Path) -> None:
    shutil.copy(newest / DATA, after)


def restore_everything(newest: Path, backup: Path, after: Path) -> None:
    shutil.copytree(backup, after, dirs_exist_ok=True)


def restore_the_ledger(newest: Path, backup: Path, after: Path) -> None:
    for name in (DATA, LEDGER):
        shutil.copy(backup / name, after)


def delete_the_last_row(newest: Path, backup: Path, after: Path) -> None:
    for name in (DATA, LEDGER):
        shutil.copy(newest / name, after)
    db = sqlite3.connect(after / LEDGER)
    db.execute("DELETE FROM releases WHERE sequence = 3")
    db.commit()
    db.close()


ACCIDENTS: dict[str, tuple[Accident, int, str]] = {
    "copied data with fresh state": (
        copy_the_data,
        0,
        "ledger {new} is new, and this key had ledger {old} with 3 rows",
    ),
    "restored backup": (restore_everything, 1, "ledger {old} has 1 rows and had 3; it is an older copy"),
    "older ledger with fresh state": (restore_the_ledger, 1, "ledger {old} has 1 rows and had 3; it is an older copy"),
    "last row deleted with fresh state": (delete_the_last_row, 2, "ledger {old} has 2 rows and had 3; it is an older"),
}
"""The accident, the rows that the client's ledger then has, and the refusal under the same key."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a server's folder, with the client's newest files and their backup."""
    folder = tmp_path_factory.mktemp("before")
    (newest := folder / "newest").mkdir()
    write_homes(newest / DATA, toy_dataset(2))
    for name, rounds in (("zero", 1), ("one", 2)):
        session = client(newest)
        assert serve(folder, session, name, rounds).status == "completed"
        ledger(folder, session).close()
        if name == "zero":
            shutil.copytree(newest, folder / "backup")
    return folder


@pytest.fixture
def newest(before: Path, tmp_path: Path) -> Path:
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    return tmp_path / "newest"


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_under_the_same_key_is_refused_with_both_heads(accident: str, newest: Path, tmp_path: Path) -> None:
    session, old = start_after(accident, newest, tmp_path), lineage(newest)
    with pytest.raises(QuorumError) as refused:
        serve(tmp_path, session, "again")
    assert ACCIDENTS[accident][2].format(new=ledger(tmp_path, session).head().lineage[:8], old=old) in str(
        refused.value
    )
    assert ledger(tmp_path, session).head().sequence == ACCIDENTS[accident][1], "nothing was released"


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_under_a_key_that_never_enrolled_is_not_covered(
    accident: str, newest: Path, tmp_path: Path
) -> None:
    session = start_after(accident, newest, tmp_path, "bob")
    result = serve(tmp_path, session, "again", key=NEW)
    assert ledger(tmp_path, session).head().sequence == ACCIDENTS[accident][1] + 2, "the lost releases are not counted"
    assert_not_covered(result, ledger(tmp_path, session))


def test_a_backup_of_before_the_server_received_the_reply_is_not_covered(newest: Path, tmp_path: Path) -> None:
    shutil.copytree(newest, tmp_path / "copy")
    lost = client(newest)

    def respond(message: Message) -> Message | None:
        reply = direct(lost)(message)
        return None if message.metadata.message_type == TRAIN else reply

    with pytest.raises(QuorumError):
        keyed_run(NodeGrid({1: respond}), configured(tmp_path, "lost", federation__deadline=1.0), tmp_path, {1: SAME})
    assert ledger(tmp_path, lost).head().sequence == 4
    ledger(tmp_path, lost).close()

    session = client(tmp_path / "copy")
    result = serve(tmp_path, session, "again")
    assert ledger(tmp_path, session).head().sequence == 3 + 2, "the lost release is not counted"
    assert_not_covered(result, ledger(tmp_path, session))


def client(folder: Path, name: str = "ann") -> Session:
    """Start a client anew on the files in a folder."""
    return open_session.__wrapped__(ClientSettings(data=str(folder / DATA), name=name, state_dir=folder / STATE))


def configured(folder: Path, name: str, rounds: int = 2, **options: Scalar) -> RunConfig:
    return noisy(folder, "fedavg", rounds=rounds, **{"privacy.accept-noise": True}, **options).model_copy(
        update={"run_id": name}
    )


def serve(folder: Path, session: Session, name: str, rounds: int = 2, key: int = SAME) -> Result:
    return keyed_run(InProcessGrid({1: session}, 1), configured(folder, name, rounds), folder, {1: key})


def start_after(accident: str, newest: Path, folder: Path, name: str = "ann") -> Session:
    """Start the client on what an accident left of its files."""
    (after := folder / "after").mkdir()
    ACCIDENTS[accident][0](newest, folder / "backup", after)
    return client(after, name)


def ledger(folder: Path, session: Session) -> Ledger:
    return session.releaser.budget.ledger(configured(folder, "any").privacy)


def lineage(folder: Path) -> str:
    database = LedgerDatabase(folder / LEDGER)
    database.close()
    return database.lineage[:8]


def assert_not_covered(result: Result, ledger: Ledger) -> None:
    assert result.status == "completed"
    assert COPIES in result.privacy.uncovered, "the server's statement"
    assert COPIES in ledger.claim().uncovered, "the client's statement"
