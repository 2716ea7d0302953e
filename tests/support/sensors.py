"""Road sensors with short series, which train in milliseconds, and their runs."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import count
from pathlib import Path
from typing import TypeVar

import numpy as np
from flwr.app import Message, RecordDict

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.traffic.data.series import Sensors, Series
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.traffic.vocabulary import demo_variables
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import PAYLOAD, RECORD, Handed, decode
from common.wire.messages import Payload
from deploy.simulation.grid import InProcessGrid
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from tests.support.build import task_model
from tests.support.configurations import method_options

G = TypeVar("G", bound=InProcessGrid)
P = TypeVar("P", bound=Payload)
MEASURES = demo_variables()
MONDAY = "2024-01-01T00:00"
HISTORY, HORIZON = 9, 3
QUICK: Mapping[str, Scalar] = {
    "task": "traffic",
    "run-id": "toy",
    "rounds": 2,
    "federation.min-clients": 1,
    "federation.wait": 0.1,
    "tasks.traffic.history": HISTORY,
    "tasks.traffic.horizon": HORIZON,
    "tasks.traffic.hidden": 2,
    "tasks.traffic.batch": 4,
}

APART: Mapping[str, Scalar] = {"model": "paper", "tasks__traffic__property": "paper", "spread": 0.5}
"""Options of clusters whose first models forecast differently and violate their property."""


def sensor(number: int, days: int = 22, start: str = MONDAY, variables: int = 1) -> Series:
    """Return readings with a daily shape, the sensor's own level and jitter; all readings differ."""
    rng = np.random.default_rng([7, number])
    hours = np.arange(24 * days)[:, None]
    values = rng.uniform(200, 900) * (1.5 + np.sin(2 * np.pi * (hours + 3 * number) / 24))
    values = values + rng.normal(0, 40, (len(hours), variables))
    return Series(f"road-{number}", np.datetime64(start, "m"), values, np.ones(values.shape, bool))


def road_config(method: str = "fedavg", **options: Scalar) -> RunConfig:
    """Return a configuration; `lr=0.1` is an option of the method, `tasks__traffic__hidden=4` has dots."""
    flat: dict[str, Scalar] = {**QUICK, "method": method, "training.local-steps": 2}
    return parse(flat | method_options(method, options))


def world(config: RunConfig) -> dict[str, np.ndarray]:
    """Return the model that a run starts from."""
    return parameters(task_model(config, MEASURES))


def session(name: str, series: tuple[Series, ...], store: Store | None = None, policy: Policy | None = None) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, Sensors(series, MEASURES))

    draws = count()
    releaser = in_memory(policy or Policy(), lambda: np.random.default_rng([*name.encode(), next(draws)]))
    return Session(name, learner, store or MemoryStore(), releaser)


class Listening(InProcessGrid):
    """Grid that records all messages in both directions."""

    def __init__(self, sessions: Mapping[int, Session], together: int = 1) -> None:
        super().__init__(sessions, together)
        self.asked: list[Message] = []
        self.answered: list[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        self.asked += messages
        return super().push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        replies = super().pull_messages(message_ids)
        copies = map(copy, replies)  # the server replaces the content of a reply that it has examined
        self.answered += sorted(copies, key=lambda reply: int(reply.metadata.reply_to_message_id))
        return replies


def road_grid(stores: Sequence[Store], kind: type[G], policy: Policy | None = None) -> G:
    """Return a federation with one client per store; client k has sensor k."""
    return kind(
        {k + 1: session(f"client-{k}", (sensor(k),), store, policy) for k, store in enumerate(stores)}, len(stores)
    )


def heard(grid: Listening, kind: type[P]) -> list[tuple[str, P]]:
    """Return all payloads of a kind, sent or received, each with the name of its client."""
    payloads = []
    for message in (*grid.asked, *grid.answered):
        if message.has_content() and payload_name(message.content) == kind.__name__:
            is_request = message.metadata.src_node_id in (0, 1) and message in grid.asked
            node = message.metadata.dst_node_id if is_request else message.metadata.src_node_id
            payloads.append((f"client-{node - 1}", decode(kind, message.content)))
    return payloads


def payload_name(content: RecordDict) -> str:
    return type(content.payload).__name__ if isinstance(content, Handed) else str(content[RECORD][PAYLOAD])


def stores(count: int) -> list[Store]:
    return [MemoryStore() for _ in range(count)]


def rounds_of(folder: Path) -> list[RoundEvent]:
    """Return the round events of the run `toy`."""
    return [event for event in RunDirectory(folder, "toy").events() if isinstance(event, RoundEvent)]
