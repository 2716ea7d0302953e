"""Withdrawal of runs: without a forgotten client, a closed form is what it would be if the client had never taken part."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Error, Message

from client.app import respond
from client.hub.hub import Hub
from client.session import Session
from client.state import MemoryStore
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ASKS_FORGETTING, ConfigError
from common.options import Scalar
from common.wire.messages import REFUSED, TRAIN
from deploy.federation.runs import stored_options
from deploy.simulation.grid import InProcessGrid
from server.record.events import RoundEvent
from server.record.folder import BEST_MODEL, RunDirectory, go_back, spaced_rounds
from server.record.withdrawal import (
    RECEIPTS,
    Receipt,
    ReceiptEntry,
    clients_of,
    find_requests,
    first_round,
    read_receipt,
    took_part,
    withdraw,
    write_receipt,
)
from server.run import run
from tests.support.hubs import NodeGrid, direct, nodes_of, settings
from tests.support.owners import SHARING, owners
from tests.support.sum_runs import POLICY, SumFederation, noised, summed
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured

ALLOWED = {"methods": ("ridge", "fedavg"), "allow_counts": "clear"}

LEFT_OUT = "client-2"


def forget(root: Path, name: str = "toy", client: str = LEFT_OUT, *, keeps_rounds: bool = True) -> ReceiptEntry:
    """Withdraw a run, and write its receipt."""
    folder = RunDirectory(root, name)
    entry = withdraw(folder, parse(stored_options(folder)), client, keeps_rounds=keeps_rounds)
    write_receipt(root, Receipt(client=client, runs=[entry]))
    return entry


def prepared(root: Path, name: str) -> RunConfig:
    """Return the configuration with which a replacement is made."""
    return parse({**stored_options(RunDirectory(root, name)), "resume": True, "run-id": name})


def solved(root: Path, name: str = "toy") -> Arrays:
    checkpoint = RunDirectory(root, name).checkpoints.load_latest()
    assert checkpoint is not None
    return checkpoint.groups["statics"]


def require_equal(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-9, err_msg=name)


def single(folder: Path, sessions: dict[int, Session]) -> RunConfig:
    folder.mkdir(exist_ok=True)
    return settings(folder, "ridge", federation__min_clients=len(sessions))


@pytest.mark.parametrize("trust", ["local", "helpers"])
def test_a_sum_without_a_client_equals_one_that_never_had_it(trust: str, tmp_path: Path) -> None:
    policy = POLICY.model_copy(update=ALLOWED)
    federation, others = (SumFederation(tmp_path / name, clients=5, policy=policy) for name in ("all", "others"))
    del others.sessions[3]
    others.connect()
    others.run(summed("ridge", trust))
    first = federation.run(summed("ridge", trust))
    before = solved(tmp_path / "all")
    entry = forget(tmp_path / "all")
    assert (entry.done, entry.replaced_by, entry.model_before) == ("withdrawn", "toy.2", first.model_sha256)
    result = federation.run(prepared(tmp_path / "all", "toy.2"), resume=True)
    assert (result.status, result.replaces, len(result.clients)) == ("completed", "toy", 4)
    require_equal(solved(tmp_path / "all", "toy.2"), solved(tmp_path / "others"))
    assert any(not np.array_equal(before[name], a) for name, a in solved(tmp_path / "all", "toy.2").items())
    [receipt] = (tmp_path / "all" / RECEIPTS).glob("*.json")
    [entry] = read_receipt(receipt).runs
    assert (entry.done, entry.model_before, entry.model_after) == (
        "solved again",
        first.model_sha256,
        result.model_sha256,
    )


@pytest.mark.parametrize(("client", "left_out"), [("a/client-3", {"a/client-3"}), ("a", {"a/client-0", "a/client-3"})])
def test_a_hub_answers_without_its_forgotten_clients(client: str, left_out: set[str], tmp_path: Path) -> None:
    for name in ("all", "others"):
        (tmp_path / name).mkdir()
        config = settings(tmp_path / name, "ridge", federation__min_clients=5 if name == "all" else 5 - len(left_out))
        people = owners(5, SHARING.model_copy(update=ALLOWED))
        nodes = nodes_of(people)
        if name == "others":
            hosted = {one.client: one for one in people.sessions.values() if one.client.startswith("a/")}
            del nodes[8]
            if staying := {key: one for key, one in hosted.items() if key not in left_out}:
                nodes[8] = Hub(staying, 1)
        grid = NodeGrid({node: one.respond if isinstance(one, Hub) else one for node, one in nodes.items()})
        run(grid, config, tmp_path / name)
        if name == "all":
            forget(tmp_path / "all", client=client)
            result = run(grid, prepared(tmp_path / "all", "toy.2"), tmp_path / "all")
            assert not left_out & result.clients.keys()
            assert len(result.clients) == 5 - len(left_out)
            texts = [path.read_bytes() for path in (tmp_path / "all" / "toy.2").rglob("*") if path.is_file()]
            assert not any(one.encode() in text for one in left_out for text in texts)
    require_equal(solved(tmp_path / "all", "toy.2"), solved(tmp_path / "others"))


def test_names_are_in_no_file_of_the_replacement(tmp_path: Path) -> None:
    people = owners(5, SHARING.model_copy(update=ALLOWED))
    run(InProcessGrid(people.sessions, 1), single(tmp_path, people.sessions), tmp_path)
    assert took_part(RunDirectory(tmp_path, "toy"), LEFT_OUT)
    forget(tmp_path)
    run(InProcessGrid(people.sessions, 1), prepared(tmp_path, "toy.2"), tmp_path)
    assert not (tmp_path / "toy").exists()
    files = [path for path in (tmp_path / "toy.2").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if LEFT_OUT.encode() in path.read_bytes()]
    assert clients_of(RunDirectory(tmp_path, "toy.2")) == {f"client-{k}" for k in (0, 1, 3, 4)}
    assert not took_part(RunDirectory(tmp_path, "toy.2"), LEFT_OUT)


def test_two_clients_are_forgotten_one_after_the_other(tmp_path: Path) -> None:
    """The second one before the run is made again, and thus known by its digest only."""
    people = owners(5, SHARING.model_copy(update=ALLOWED))
    run(InProcessGrid(people.sessions, 1), single(tmp_path, people.sessions), tmp_path)
    forget(tmp_path)
    assert took_part(RunDirectory(tmp_path, "toy.2"), "client-4")
    assert not took_part(RunDirectory(tmp_path, "toy.2"), "client-9")
    assert forget(tmp_path, "toy.2", "client-4").replaced_by == "toy.3"
    result = run(InProcessGrid(people.sessions, 1), prepared(tmp_path, "toy.3"), tmp_path)
    assert sorted(result.clients) == ["client-0", "client-1", "client-3"]
    lines = [entry for path in (tmp_path / RECEIPTS).glob("*.json") for entry in read_receipt(path).runs]
    assert {(entry.replaced_by, entry.done, entry.model_after) for entry in lines} == {
        ("toy.3", "solved again", result.model_sha256)
    }
    with pytest.raises(ConfigError, match=r"run 'toy\.2' was withdrawn, .* use run 'toy\.3'"):
        RunDirectory(tmp_path, "toy.2").config()


def test_noise_is_charged_again_by_the_others_only(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, clients=5, policy=POLICY.model_copy(update=ALLOWED))
    config = noised(method="ridge")
    federation.run(config)
    [once, *_] = federation.spent(config)
    forget(tmp_path)
    federation.run(prepared(tmp_path, "toy.2"), resume=True)
    assert federation.spent(config) == [pytest.approx(once * (1 if k == 2 else 2)) for k in range(5)]


@pytest.mark.parametrize(
    ("clients", "options", "reason"),
    [
        (1, {"federation__min-clients": 1}, "no other client took part"),
        (3, {"trust": "helpers"}, "2 other clients took part, and a masked sum needs 3"),
        (3, {"federation__min-replies": 3}, "2 other clients took part, and a round needs 3"),
    ],
)
def test_too_few_others_leave_no_run(clients: int, options: dict[str, Scalar], reason: str, tmp_path: Path) -> None:
    trust = str(options.pop("trust", "local"))
    federation = SumFederation(tmp_path, clients=clients, helpers=2 if trust == "helpers" else 0)
    federation.run(summed("fedavg", trust, rounds=1, **options))
    entry = forget(tmp_path, client="client-0")
    assert (entry.done, entry.reason, entry.replaced_by) == ("withdrawn", reason, "")
    assert [path.name for path in tmp_path.iterdir()] == [RECEIPTS]


def late(federation: SumFederation, config: RunConfig) -> None:
    """Run three rounds in which the third client comes after the first one."""
    late_session = federation.sessions.pop(3)
    federation.connect()
    federation.run(config.model_copy(update={"rounds": 1}))
    federation.sessions[3] = late_session
    federation.connect()
    federation.run(config, resume=True)


@pytest.mark.parametrize(("method", "start"), [("fedavg", 1), ("fedrep", 0)])
def test_training_goes_on_before_the_first_round_of_the_client(method: str, start: int, tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, helpers=0, policy=POLICY)
    config = summed(method, "local", **{"federation__min-clients": 3})
    late(federation, config)
    old = RunDirectory(tmp_path, "toy")
    before = old.checkpoints.load(1).groups["model"]
    events = [event for event in old.events() if isinstance(event, RoundEvent)]
    assert (first_round(old, LEFT_OUT), [len(event.clients) for event in events]) == (2, [3, 4, 4])
    assert forget(tmp_path).from_round == start
    new = RunDirectory(tmp_path, "toy.2")
    assert new.checkpoints.rounds() == [1] * start
    if start:
        require_equal(new.checkpoints.load(1).groups["model"], before)
    result = federation.run(prepared(tmp_path, "toy.2"), resume=True)
    assert (result.rounds_done, len(result.clients)) == (3, 3)
    assert not [path for path in new.path.rglob("*") if path.is_file() and LEFT_OUT.encode() in path.read_bytes()]


def test_a_run_in_use_is_not_withdrawn(tmp_path: Path) -> None:
    people = owners(3, SHARING.model_copy(update=ALLOWED))
    run(InProcessGrid(people.sessions, 1), single(tmp_path, people.sessions), tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    config = parse(stored_options(folder))
    with folder.lock(), pytest.raises(ConfigError, match="in use"):
        withdraw(RunDirectory(tmp_path, "toy"), config, LEFT_OUT, keeps_rounds=False)
    assert (folder.path / "result.json").exists()


def test_a_client_asks_to_be_forgotten_in_a_round(tmp_path: Path) -> None:
    people = owners(4, SHARING.model_copy(update=ALLOWED))

    def ask(message: Message) -> Message | None:
        if message.metadata.message_type == TRAIN and message.content["fedloom"]["round"] == 2:
            return Message(Error(REFUSED, ASKS_FORGETTING), reply_to=message)
        return respond(people.sessions[3], message)

    nodes = {node: direct(session) for node, session in people.sessions.items()} | {3: ask}
    run(NodeGrid(nodes), settings(tmp_path, "fedavg", federation__min_clients=4), tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    rounds = [event for event in folder.events() if isinstance(event, RoundEvent)]
    assert find_requests(folder) == {LEFT_OUT, "node-3"}, "it has no name while it is invited again"
    assert [event.answered for event in rounds] == [4, 3, 3]
    assert rounds[2].clients[LEFT_OUT].state == "refused"
    forget(tmp_path)
    assert not find_requests(RunDirectory(tmp_path, "toy.2"))


def test_a_replacement_takes_a_free_name_or_that_of_a_killed_process(tmp_path: Path) -> None:
    people = owners(4, SHARING.model_copy(update=ALLOWED))
    config = single(tmp_path, people.sessions)
    for name in ("toy", "toy.2"):
        run(InProcessGrid(people.sessions, 1), config.model_copy(update={"run_id": name}), tmp_path)
    copy = shutil.copytree(tmp_path / "toy", tmp_path / "copy")
    assert forget(tmp_path).replaced_by == "toy.3"
    copy.rename(tmp_path / "toy")  # as if the process had been killed before it deleted the run
    (tmp_path / RECEIPTS / "damaged.json").write_text("{")
    assert forget(tmp_path).replaced_by == "toy.3"
    assert RunDirectory(tmp_path, "toy.2").result()
    assert run(InProcessGrid(people.sessions, 1), prepared(tmp_path, "toy.3"), tmp_path).status == "completed"


def configuration(folder: Path, **options: bool) -> RunConfig:
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json())
    return configured("fedavg", rounds=6, catalogue=str(path), tasks__rules__validation_share=0.3, **options)


def test_a_run_goes_on_from_an_earlier_round_as_it_did_before(tmp_path: Path) -> None:
    folder, sessions = RunDirectory(tmp_path, "toy"), toy_sessions([MemoryStore() for _ in range(3)])
    first = run(InProcessGrid(sessions, 1), configuration(tmp_path), tmp_path)
    assert folder.checkpoints.rounds() == [1, 2, 3, 4, 5, 6]
    go_back(folder, 3)
    rounds = [event.round for event in folder.events() if isinstance(event, RoundEvent)]
    assert (rounds, folder.checkpoints.rounds(), folder.result()) == ([1, 2, 3], [1, 2, 3], None)
    again = run(InProcessGrid(sessions, 1), configuration(tmp_path, resume=True), tmp_path)
    assert (again.status, again.model_sha256) == ("completed", first.model_sha256)
    assert [event.round for event in folder.events() if isinstance(event, RoundEvent)] == [1, 2, 3, 4, 5, 6]


def test_a_best_model_of_a_later_round_is_removed(tmp_path: Path) -> None:
    folder, sessions = RunDirectory(tmp_path, "toy"), toy_sessions([MemoryStore() for _ in range(3)])
    run(InProcessGrid(sessions, 1), configuration(tmp_path), tmp_path)
    best = int(folder.load_model(BEST_MODEL)[1]["round"])
    go_back(folder, 1)
    assert (folder.path / BEST_MODEL).exists() == (best <= 1)


def test_a_round_without_checkpoint_is_refused_with_those_there_are(tmp_path: Path) -> None:
    folder = RunDirectory(tmp_path, "toy")
    folder.create({}, {})
    with pytest.raises(ConfigError, match="no checkpoint of round 4; choose --round from: none"):
        go_back(folder, 4)


@pytest.mark.parametrize(("newest", "expected"), [(0, []), (3, [1, 2, 3]), (9, [2, 4, 6, 8]), (1000, 7)])
def test_few_checkpoints_are_evenly_spaced(newest: int, expected: list[int] | int) -> None:
    rounds = list(spaced_rounds(newest))
    assert rounds == expected if isinstance(expected, list) else len(rounds) == expected
    earlier = set(spaced_rounds(newest - 1)) if newest else set()
    assert set(rounds) - {newest} <= earlier  # what is kept now was kept before
