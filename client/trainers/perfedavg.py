"""Trainer of Per-FedAvg (Fallah et al. 2020, Algorithm 1)."""

from dataclasses import replace

from torch import Tensor

from client.state import ClientMemory
from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import Participant, build_generator
from client.training.stacks import Tensors, are_finite, row, stack
from client.training.state import HEAD, PERSONALIZED
from client.training.steps import GradientAndLoss, build_step, descend, initialize_moments, plain_gradient
from common.methods import perfedavg
from common.methods.perfedavg import PerFedAvg
from common.models import tensors


class PerFedAvgTrainer(FedAvgTrainer):
    """Trainer with descent along ∇F_k; the personalized model is adapted from the shared one."""

    def __init__(self, options: PerFedAvg) -> None:
        super().__init__(options)
        self.alpha, self.delta = options.alpha, options.delta
        self.first_order = options.variant == "first-order"
        self.samples_per_step = 2 if self.first_order else 3

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """Return ∇F_k(w) = (I − α∇²L_k(w; D″)) ∇L_k(w − α∇L_k(w; D); D′) with L_k(w), from ∇L_k."""

        def meta(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
            first, value = plain(params, batch, _sample_of(inputs, 0))
            g, _ = plain(_add_scaled(params, first, -self.alpha), batch, _sample_of(inputs, 1))
            if self.first_order:
                return g, value
            ahead, _ = plain(_add_scaled(params, g, self.delta), batch, _sample_of(inputs, 2))
            behind, _ = plain(_add_scaled(params, g, -self.delta), batch, _sample_of(inputs, 2))
            curved = {n: (ahead[n] - behind[n]) / (2 * self.delta) for n in g}
            return _add_scaled(g, curved, -self.alpha), value

        return meta

    def personalize(self, participant: Participant) -> ClientMemory:
        """Return the client state with a model adapted by the participant's steps w ← w − α∇L_k(w).

        The steps start from the shared model. A diverged model is left out; the shared model is used instead.
        """
        state, learner, request = participant.store.load(participant.run), participant.learner, participant.request
        start = stack([tensors(request.model) | state.groups.get(f"{HEAD}.after", {})])
        options = self.options.model_copy(update={"optimizer": "sgd", "lr": self.alpha, "lr_predictor": 0.0})
        descent = descend(
            plain_gradient(learner),
            start,
            batch=stack([learner.batch(request)]),
            inputs=stack([learner.step_inputs(participant.steps, build_generator(participant))]),
            steps=participant.steps,
            step=build_step(options),
            moments=initialize_moments(options, start),
            clip_norm=options.clip_norm,
        )
        groups = {name: group for name, group in state.groups.items() if not name.startswith(PERSONALIZED)}
        adapted = {f"{PERSONALIZED}.after": row(descent.params, 0)} if are_finite(descent.params)[0] else {}
        return replace(state, groups={**groups, **adapted})


def _add_scaled(tensors: Tensors, direction: Tensors, size: float) -> Tensors:
    return {n: t + size * direction[n] for n, t in tensors.items()}


def _sample_of(inputs: Tensors, number: int) -> Tensors:
    """Return one of the samples of the inputs of a step, K × ….

    Tensors of a step are K × samples × ….
    """
    return {n: t[:, number] for n, t in inputs.items()}


METHOD = ClientMethod(perfedavg.METHOD, PerFedAvgTrainer)
