"""Model that a client adapts from the shared one, for methods with `own_model="adapted"`."""

from dataclasses import replace

from client.state import ClientMemory
from client.training.participant import Participant, build_generator
from client.training.stacks import are_finite, row, stack
from client.training.state import HEAD, PERSONALIZED
from client.training.steps import build_step, descend, initialize_moments, plain_gradient
from common.methods.base import MethodOptions
from common.models import tensors


def adapt_model(participant: Participant, options: MethodOptions, lr: float) -> ClientMemory:
    """Return the client state with a model adapted by the participant's steps w ← w − lr·∇L_k(w).

    The steps start from the shared model. A diverged model is left out; the shared model is used instead.

    Args:
        participant: Client whose data adapt the model.
        options: Options of the method; its optimizer is not used.
        lr: Step size.
    """
    state, learner, request = participant.store.load(participant.run), participant.learner, participant.request
    start = stack([tensors(request.model) | state.groups.get(f"{HEAD}.after", {})])
    descent_options = options.model_copy(update={"optimizer": "sgd", "lr": lr, "lr_predictor": 0.0})
    descent = descend(
        plain_gradient(learner),
        start,
        batch=stack([learner.batch(request)]),
        inputs=stack([learner.step_inputs(participant.steps, build_generator(participant))]),
        steps=participant.steps,
        step=build_step(descent_options),
        moments=initialize_moments(descent_options, start),
        clip_norm=descent_options.clip_norm,
    )
    groups = {name: group for name, group in state.groups.items() if not name.startswith(PERSONALIZED)}
    adapted = {f"{PERSONALIZED}.after": row(descent.params, 0)} if are_finite(descent.params)[0] else {}
    return replace(state, groups={**groups, **adapted})
