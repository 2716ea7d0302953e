"""Windows of FedSTL: opt-in, refusals, and clients with invalid windows."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from client.owner.policy import Policy
from common.arrays import Arrays
from common.errors import ConfigError, QuorumError, RefusedError, WireError
from common.methods.fedstl import WINDOWS as SAMPLE
from common.tasks.traffic.shared_windows import PREFIX, Sample
from common.wire.codec import decode, encode
from common.wire.messages import AssignReply, AssignRequest, TrainRequest
from server.record.privacy_statement import statement
from server.run import run
from tests.support.sensors import (
    HISTORY,
    HORIZON,
    Listening,
    heard,
    road_config,
    rounds_of,
    sensor,
    session,
)
from tests.support.shared_windows import OPEN, SHARED, federation


def test_a_client_sends_no_windows_without_an_opt_in(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="does not allow method 'fedstl' to send data in plaintext"):
        federation(road_config("fedstl", clusters=2, **SHARED), tmp_path, Policy())


def test_a_request_for_windows_is_refused_unless_the_run_announces_it(tmp_path: Path) -> None:
    grid = federation(road_config("fedstl", rounds=1, clusters=2), tmp_path, Policy(share_metrics="always"))
    name = heard(grid, TrainRequest)[0][1].enrolment
    with pytest.raises(RefusedError, match="does not announce that clients send training windows"):
        grid._sessions[1].assign(AssignRequest(2, name, {}, "sample"))


def test_windows_are_an_uncovered_channel_and_refused_with_noise() -> None:
    assert statement(road_config("fedstl", **SHARED), {}, 0).uncovered[0] == SAMPLE
    assert SAMPLE not in statement(road_config("fedstl"), {}, 0).uncovered
    with pytest.raises(ConfigError, match="which noise does not cover; remove privacy"):
        road_config("fedstl", privacy__unit="client", **SHARED)
    with pytest.raises(ConfigError, match="needs a range property"):
        road_config("fedstl", **{**SHARED, "tasks__traffic__property": "difference"})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"clock": None}, "no sample"),
        ({"clock": np.full((2, HORIZON), 168)}, "times outside the week"),
        ({"clock": np.zeros((2, HORIZON + 1), int)}, "does not fit"),
        ({"clock": np.zeros(3, int)}, "does not fit"),
        ({"target": np.full((2, HORIZON, 1), np.nan)}, "non-finite"),
        ({"history": np.zeros((2, 4, 1))}, "does not fit"),
        ({"clock": np.zeros((2, HORIZON))}, "does not fit"),
        ({"clock": np.zeros((2, HORIZON), bool)}, "does not fit"),
        ({"base": np.zeros(())}, "does not fit"),
    ],
)
def test_windows_that_do_not_match_the_run_are_refused(changed: dict[str, np.ndarray | None], reason: str) -> None:
    parts = {
        "history": np.zeros((2, HISTORY, 1)),
        "base": np.zeros((2, HORIZON, 1)),
        "target": np.zeros((2, HORIZON, 1)),
    }
    sent = {
        f"{PREFIX}{n}": a
        for n, a in {**parts, "clock": np.zeros((2, HORIZON), int), **changed}.items()
        if a is not None
    }
    with pytest.raises(WireError, match=reason):
        Sample.of({"low": np.zeros((168, 1)), **sent}, road_config("fedstl").task_options)


def two_variables(reply: AssignReply) -> Arrays:
    """Return windows and a property of twice as many variables."""
    return {
        n: np.concatenate([a, a], axis=-1) if a.ndim > 1 and "clock" not in n else a for n, a in reply.property.items()
    }


def other_property(reply: AssignReply) -> Arrays:
    return {n: np.concatenate([a, a], axis=-1) if n in ("low", "high") else a for n, a in reply.property.items()}


def real_clock(reply: AssignReply) -> Arrays:
    return {n: a.astype(np.float64) if n == f"{PREFIX}clock" else a for n, a in reply.property.items()}


def flat_property(reply: AssignReply) -> Arrays:
    return {n: np.zeros((), np.float32) if n in ("low", "high") else a for n, a in reply.property.items()}


@pytest.mark.parametrize("change", [two_variables, other_property, real_clock, flat_property])
def test_windows_of_other_variables_are_left_out_and_the_run_continues(
    change: Callable[[AssignReply], Arrays], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class OtherVariables(Listening):
        """Grid whose second client sends windows of other variables."""

        def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
            return [self._changed(reply) for reply in super().pull_messages(message_ids)]

        def _changed(self, message: Message) -> Message:
            if message.metadata.src_node_id == 2 and "AssignReply" in str(message.content):
                reply = decode(AssignReply, message.content)
                message.content = encode(replace(reply, property=change(reply)))
            return message

    config = road_config("fedstl", clusters=2, **{**SHARED, "rounds": 2})
    grid = OtherVariables({k + 1: session(f"client-{k}", (sensor(k),), policy=OPEN) for k in range(3)})
    assert run(grid, config, tmp_path).status == "completed"
    left_out = sum("client-1: cluster not updated" in line for line in caplog.messages)
    assert left_out == 4, "requests for its training and its evaluation"
    assert all({"client-0", "client-2"} <= line.clusters.keys() for line in rounds_of(tmp_path))
