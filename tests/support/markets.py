"""Three demo markets under PF-GNN+."""

from pathlib import Path

from client.data.read import read_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import Store
from client.tasks.learner import Learner
from client.tasks.markets.data.markets import Markets
from client.tasks.registry import build_learner
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays
from common.config.keys import current_key
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import TrainReply, TrainRequest
from server.aggregation.replies import Reply, add_up
from server.compose import build_method
from server.record.folder import RunDirectory
from server.round.method import RoundContext
from server.round.state import RunState
from server.run import run
from tests.support.build import learner_of, task_model
from tests.support.sensors import Listening, stores

DEMO = read_all("markets", "demo:3-6")  # the three smallest

PHI, PRIVATE = {"phi.mean", "phi.log_variance"}, {"theta", "alpha", "kappa"}


def configured(model: str = "paper", **options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "pfgnn", "task": "markets", "model": model, "run-id": "toy", "rounds": 2}
    flat |= {"tasks.markets.width": 24, "tasks.markets.embedding": 6, "tasks.markets.batch": 64}
    flat |= {"federation.min-clients": 1, "federation.wait": 0.1}
    own: dict[str, Scalar] = {"local_steps": 3, "clusters": 4, **options}
    return parse(flat | {current_key(f"algorithm.pfgnn.{key.replace('_', '-')}"): value for key, value in own.items()})


def market(number: int) -> Markets:
    return Markets(DEMO.units[number : number + 1], DEMO.vocabulary)


def session(number: int, store: Store) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, market(number))

    return Session(f"client-{number}", learner, store, in_memory(Policy()))


def federated(config: RunConfig, folder: Path) -> tuple[Listening, list[Store], Arrays]:
    """Run three markets; return the messages, the client states and the model."""
    states = stores(len(DEMO.units))
    grid = Listening({k + 1: session(k, store) for k, store in enumerate(states)})
    run(grid, config, folder)
    return grid, states, RunDirectory(folder, "toy").load_model()[0]


def participant(config: RunConfig, store: Store, model: Arrays | None = None, number: int = 1) -> Participant:
    learner = learner_of(config, DEMO.vocabulary, market(0).units)
    request = TrainRequest(number, "toy:0", model or parameters(task_model(config, DEMO.vocabulary)))
    return Participant("client-0", "toy", 0, learner, store, request, config.method_options.local_steps)


def once(config: RunConfig, one: Participant) -> TrainReply:
    [reply] = train(config.method_options, [one])
    assert isinstance(reply, TrainReply)
    return reply


def shared_after(config: RunConfig, model: Arrays, replies: list[TrainReply]) -> Arrays:
    """Return the server's next model."""
    state = RunState(0, model)
    answers = [Reply(f"client-{k}", 1.0, reply) for k, reply in enumerate(replies)]
    total = add_up(answers, config.capabilities)
    return build_method(config, state).update(RoundContext(config, state), {}, model, total)[0]
