"""A liar that leaves a round with too few usable replies: it is repeated with the others."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from flwr.app import Error, Message

from common.errors import QuorumError
from common.options import Scalar
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.run import run
from studies.lies.liars import LyingGrid, failed, filled, scaled, trained
from tests.support.owners import PLANNERS, noisy, owners
from tests.support.sensors import rounds_of, stores
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured

LIES = {"out of range": trained(steps=4000), "huge": trained(update=scaled(1e30)), "failure": failed("no memory")}


def options(folder: Path, quorum: int, **more: Scalar) -> dict[str, Scalar]:
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json())
    quick: dict[str, Scalar] = {"federation__wait": 0.1, "federation__patience": 0.1, "rounds": 4}
    return {"catalogue": str(path), "federation__min_replies": quorum, **quick, **more}


@pytest.mark.parametrize("lie", LIES)
def test_a_round_goes_on_with_the_others(lie: str, tmp_path: Path) -> None:
    config = configured("fedavg", **options(tmp_path, 3, federation__cohort=0.5))
    result = run(LyingGrid(toy_sessions(stores(5)), 5, TRAIN, LIES[lie]), config, tmp_path)
    lines = rounds_of(tmp_path)
    assert (result.status, [line.round for line in lines]) == ("completed", [1, 2, 3, 4])
    assert {line.answered for line in lines} == {3}
    hit = [line for line in lines if line.refused]
    assert hit, "the liar was drawn"
    assert all(line.refused.keys() == {"client-4"} for line in hit)


def test_a_lone_liar_is_replaced_under_the_default_quorum(tmp_path: Path) -> None:
    config = configured("fedavg", **options(tmp_path, 1, federation__cohort=0.5))
    result = run(LyingGrid(toy_sessions(stores(2)), 2, TRAIN, LIES["out of range"]), config, tmp_path)
    assert result.status == "completed"
    assert {(line.answered, *line.refused) for line in rounds_of(tmp_path)} == {(1,), (1, "client-1")}


def test_a_planned_round_goes_on_with_the_others(tmp_path: Path) -> None:
    config = noisy(tmp_path, "uniform", **options(tmp_path, 3, federation__cohort=0.4), **PLANNERS["uniform"])
    result = run(LyingGrid(owners(7).sessions, 7, TRAIN, trained(update=filled(1e30))), config, tmp_path)
    lines = rounds_of(tmp_path)
    assert (result.status, {line.answered for line in lines}) == ("completed", {3})
    assert {name for line in lines for name in line.refused} == {"client-6"}


def test_a_quorum_that_needs_the_liar_is_an_error_that_names_it(tmp_path: Path) -> None:
    config = configured("fedavg", **options(tmp_path, 3))
    with pytest.raises(QuorumError, match=r"2 usable replies, 3 needed; client-2: invalid reply: 4000"):
        run(LyingGrid(toy_sessions(stores(3)), 3, TRAIN, LIES["out of range"]), config, tmp_path)


def test_clients_that_all_lie_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, asked = InProcessGrid(toy_sessions(stores(4)), 1), list[int]()

    def refuse(messages: Sequence[Message]) -> list[Message]:
        asked.extend(message.metadata.dst_node_id for message in messages)
        return [Message(Error(1000, "no memory"), reply_to=message) for message in messages]

    monkeypatch.setattr(grid, "_train", refuse)
    with pytest.raises(QuorumError, match="0 usable replies, 1 needed"):
        run(grid, configured("fedavg", **options(tmp_path, 1, federation__cohort=0.25)), tmp_path)
    assert sorted(asked) == [1, 2, 3, 4], "each once"
