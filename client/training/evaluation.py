"""What a client measures of a run's model, and the model of its own that Per-FedAvg has it make for that; nothing leaves."""

from dataclasses import replace

from torch.func import grad_and_value

from client.stacked_tensors import are_finite, row, stack
from client.state import ClientMemory
from client.tasks.learner import TaskLearner
from client.trainers.gradient_descent import descend
from client.trainers.optimizers import build_step, fresh_moments
from client.training.client_state import HEAD, OWN
from client.training.cohort import evaluated
from client.training.participant import Participant, generator
from common.methods.registry import Algorithm, PerFedAvg
from common.models import tensors
from common.wire.messages import Metrics

ADAPT = "adapt"
"""Phase of the steps in which a client makes the shared model its own; no server asks for it."""


def measured(
    algorithm: Algorithm, learner: TaskLearner, member: Participant, split: str, *, final: bool
) -> tuple[Metrics, Metrics]:
    """Metrics of the lines and of every model the client has, with their weights.

    Args:
        algorithm: The method.
        learner: The client's data.
        member: The client; its request brings the shared model and the sums, its steps are those of `ADAPT`.
        split: `validation` or `test`.
        final: Whether this is the finished model; what the client makes its own is then kept for recommendations.
    """
    request, memory = member.request, member.store.load(member.run)
    if isinstance(algorithm, PerFedAvg) and learner.examples:
        memory = personalised(algorithm, member)
        if final:
            member.store.save(member.run, memory)
    metrics, weights = map(dict, learner.baselines(split, request.statics))  # the learner may keep what it says
    for prefix, model in evaluated(algorithm, request.model, memory).items():
        values, counts = learner.evaluate(model, request.statics, split)
        metrics |= {f"{prefix}{name}": value for name, value in values.items()}
        weights |= {f"{prefix}{name}": count for name, count in counts.items()}
    return metrics, weights


def personalised(algorithm: PerFedAvg, member: Participant) -> ClientMemory:
    """The member's memory with a model of its own in it: as many steps w ← w − α∇L_k(w) as the member makes.

    They start from the shared model, whatever the member adapted before. A model that diverges is not kept: the shared one
    serves then. Nothing is saved.
    """
    memory, learner, request = member.store.load(member.run), member.learner, member.request
    start = stack([tensors(request.model) | memory.groups.get(f"{HEAD}.after", {})])
    options = algorithm.model_copy(update={"optimizer": "sgd", "lr": algorithm.alpha, "lr_predictor": 0.0})
    descent = descend(
        grad_and_value(learner.loss),
        start,
        batch=stack([learner.batch(request)]),
        noise=stack([learner.step_inputs(member.steps, generator(member))]),
        steps=member.steps,
        step=build_step(options),
        moments=fresh_moments(options, start),
        clip_norm=algorithm.clip_norm,
    )
    others = {name: group for name, group in memory.groups.items() if not name.startswith(OWN)}
    own = {f"{OWN}.after": row(descent.params, 0)} if are_finite(descent.params)[0] else {}
    return replace(memory, groups={**others, **own})
