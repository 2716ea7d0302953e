"""Small federations: homes with three device types and a few rules, and quadratic clients."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from flwr.app import Message, Metadata, RecordDict
from torch import Tensor

from client.state import MemoryStore, Store
from client.tasks.rules.data.homes import Device, Home, Homes, as_edges
from client.trainers.registry import build_trainer
from client.training.local_round import train
from client.training.participant import Participant
from client.training.stacks import Tensors
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from common.models import tensors
from common.options import Scalar
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.messages import EnrolRequest, TrainReply, TrainRequest
from server.aggregation.replies import Reply, add_up
from server.clients.enrolment import Enrolment
from server.round.method import RoundContext
from server.round.state import RunState
from tests.support.build import round_of
from tests.support.configurations import method_options

METHODS = ("fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad", "fedrule", "fedga", "ditto")
"""Methods that share one whole model."""

CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp", "Plug"),
    relations=("closes → turn off", "closes → turn on", "opens → turn off", "opens → turn on"),
)


def toy_homes(count: int, seed: int = 0) -> tuple[Home, ...]:
    """Return homes of 3 to 5 devices and 5 to 9 rules; each has at least one test rule."""
    rng = np.random.default_rng(seed)
    homes = []
    for number in range(count):
        nodes, rules = int(rng.integers(3, 6)), int(rng.integers(5, 10))
        devices = tuple(Device(f"d{k}", int(rng.integers(3))) for k in range(nodes))
        possible = [(i, j, r) for i in range(nodes) for j in range(nodes) if i != j for r in range(4)]
        chosen = rng.choice(len(possible), size=rules, replace=False)
        homes.append(Home(f"user-{number}", devices, as_edges(possible[int(c)] for c in chosen)))
    return tuple(homes)


def toy_dataset(count: int, seed: int = 0) -> Homes:
    return Homes(toy_homes(count, seed), CATALOGUE)


def configured(method: str = "fedrule", **options: Scalar) -> RunConfig:
    """Return a configuration; `lr=0.1` is an option of the method, `tasks__rules__hidden=4` a dotted key."""
    flat: dict[str, Scalar] = {"method": method, "run-id": "toy", "tasks.rules.hidden": 4}
    return parse(flat | method_options(method, options))


class Quadratic:
    """Client with L_k(θ) = ½(θ − c)ᵀA(θ − c), θ = [encoder.w ‖ predictor.w] ∈ ℝ⁴, in float64."""

    task = "rules"
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, curvature: np.ndarray, centre: np.ndarray, examples: int = 1) -> None:
        self.curvature, self.centre, self.examples, self.size = curvature, centre, examples, 1

    def batch(self, request: TrainRequest) -> Tensors:
        return {"A": torch.from_numpy(self.curvature), "c": torch.from_numpy(self.centre)}

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        return {}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        away = torch.cat([params["encoder.w"], params["predictor.w"]]) - batch["c"]
        return 0.5 * away @ batch["A"] @ away

    def gradient(self, model: Arrays) -> np.ndarray:
        return self.curvature @ (flat(model) - self.centre)


def quadratics(count: int, seed: int = 0, examples: Collection[int] = ()) -> dict[str, Quadratic]:
    """Return clients whose curvatures differ (eigenvalues 0.5 to 2), which moves FedAvg off the optimum."""
    rng = np.random.default_rng(seed)
    weights = list(examples) or [1] * count
    clients = {}
    for k in range(count):
        rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
        curvature = rotation @ np.diag(rng.uniform(0.5, 2, 4)) @ rotation.T
        clients[f"client-{k}"] = Quadratic(curvature, rng.normal(size=4), weights[k])
    return clients


def optimum(clients: Mapping[str, Quadratic]) -> np.ndarray:
    """Return the minimizer of Σ p_k L_k: argmin Σ p_k L_k = (Σ p_k A_k)⁻¹ Σ p_k A_k c_k."""
    curvature = sum(c.examples * c.curvature for c in clients.values())
    return np.linalg.solve(curvature, sum(c.examples * c.curvature @ c.centre for c in clients.values()))


def flat(model: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(model["encoder.w"]), np.ravel(model["predictor.w"])])


def quadratic_model() -> Arrays:
    return {"encoder.w": np.zeros(2), "predictor.w": np.zeros(2)}


@dataclass
class Toy:
    """Quadratic clients under the client code and the server step, without messages in between."""

    config: RunConfig
    clients: dict[str, Quadratic]
    steps: dict[str, int] = field(default_factory=dict)
    """τ_k of clients that make another number of steps than configured."""

    def __post_init__(self) -> None:
        self.stores: dict[str, Store] = {name: MemoryStore() for name in self.clients}
        state = RunState(0, quadratic_model())
        self.strategy = round_of(self.config, state, _nobody())

    @property
    def model(self) -> np.ndarray:
        return flat(self.strategy.state.model)

    def request(self, client: str) -> TrainRequest:
        state = self.strategy.state
        last = state.counted.get(client, 0)
        return TrainRequest(
            state.round + 1, "toy:0", state.model, self.strategy.method.broadcast(state.memory, last), last
        )

    def ask(self, client: str) -> TrainReply:
        """Let the client train and return its reply."""
        steps = self.steps.get(client, self.config.method_options.local_steps)
        participant = Participant(
            client, "toy", 0, self.clients[client], self.stores[client], self.request(client), steps
        )
        [reply] = train(self.config.method_options, [participant])
        if isinstance(reply, FedloomError):
            raise reply
        return reply

    def round(self, asked: Collection[str] = (), lost: Collection[str] = ()) -> None:
        """Train these clients (all by default) and aggregate; replies of `lost` clients do not arrive."""
        replies = {name: self.ask(name) for name in sorted(asked or self.clients)}
        examples = self.config.method_options.weighting == "examples"
        usable = [
            Reply(name, float(reply.examples) if examples else 1.0, reply)
            for name, reply in replies.items()
            if name not in lost
        ]
        state = self.strategy.state
        total = add_up(usable, self.config.capabilities)
        at = RoundContext(self.config, state)
        model, memory = self.strategy.method.update(at, state.memory, state.model, total)
        self.strategy.state = state.next(model, memory, [r.client for r in usable])

    def delta(self, client: str) -> np.ndarray:
        """Return the δ_k that the client uses in its next round."""
        state, request = self.stores[client].load("toy"), self.request(client)
        counted = 0 < state.round == request.shared_round
        delta = build_trainer(self.config.method_options).settle(state.groups, counted, tensors(request.shared))
        return flat({n: d.numpy() for n, d in delta.items()}) if delta else np.zeros(4)


def instruction(node: int, content: RecordDict | None = None, kind: str = "train") -> Message:
    """Return a message as the server sends it."""
    metadata = Metadata(1, f"m{node}", 1, node, "", "1", 0.0, 1e9, kind)
    return Message(metadata=metadata, content=content or RecordDict())  # type: ignore[call-overload,no-any-return]


def _nobody() -> Enrolment:
    return Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: [])
