"""The client side of Per-FedAvg (Fallah et al. 2020, Algorithm 1); mirror of `server/strategies/perfedavg.py`."""

from dataclasses import replace

from torch import Tensor
from torch.func import grad_and_value

from client.stacked_tensors import Tensors, are_finite, row, stack
from client.state import ClientMemory
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.gradient_descent import GradientAndLoss, descend
from client.trainers.optimizers import build_step, fresh_moments
from client.trainers.spec import ClientMethod
from client.training.client_state import HEAD, OWN
from client.training.participant import Participant, generator
from common.methods import perfedavg
from common.methods.perfedavg import PerFedAvg
from common.models import tensors


class PerFedAvgTrainer(FedAvgTrainer):
    """Descends along ∇L_k at the adapted parameters; a client's own model is one adapted from the shared one."""

    def __init__(self, options: PerFedAvg) -> None:
        super().__init__(options)
        self.alpha, self.delta = options.alpha, options.delta
        self.first_order = options.variant == "first-order"
        self.draws = 2 if self.first_order else 3

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """∇F_k(w) and L_k(w) from ∇L_k: (I − α∇²L_k(w; D″)) ∇L_k(w − α∇L_k(w; D); D′)."""

        def meta(params: Tensors, batch: Tensors, noise: Tensors) -> tuple[Tensors, Tensor]:
            first, value = plain(params, batch, _draw(noise, 0))
            g, _ = plain(_moved(params, first, -self.alpha), batch, _draw(noise, 1))
            if self.first_order:
                return g, value
            ahead, _ = plain(_moved(params, g, self.delta), batch, _draw(noise, 2))
            behind, _ = plain(_moved(params, g, -self.delta), batch, _draw(noise, 2))
            curved = {n: (ahead[n] - behind[n]) / (2 * self.delta) for n in g}
            return _moved(g, curved, -self.alpha), value

        return meta

    def personalize(self, participant: Participant) -> ClientMemory:
        """Return the client state with a model of so many steps w ← w − α∇L_k(w) as the participant makes.

        The steps start from the shared model. A model that diverges is left out: the shared one is used then.
        """
        memory, learner, request = participant.store.load(participant.run), participant.learner, participant.request
        start = stack([tensors(request.model) | memory.groups.get(f"{HEAD}.after", {})])
        options = self.options.model_copy(update={"optimizer": "sgd", "lr": self.alpha, "lr_predictor": 0.0})
        descent = descend(
            grad_and_value(learner.loss),
            start,
            batch=stack([learner.batch(request)]),
            noise=stack([learner.step_inputs(participant.steps, generator(participant))]),
            steps=participant.steps,
            step=build_step(options),
            moments=fresh_moments(options, start),
            clip_norm=options.clip_norm,
        )
        others = {name: group for name, group in memory.groups.items() if not name.startswith(OWN)}
        own = {f"{OWN}.after": row(descent.params, 0)} if are_finite(descent.params)[0] else {}
        return replace(memory, groups={**others, **own})


def _moved(tensors: Tensors, along: Tensors, size: float) -> Tensors:
    return {n: t + size * along[n] for n, t in tensors.items()}


def _draw(noise: Tensors, number: int) -> Tensors:
    """One of a step's draws."""
    return {n: t[number] for n, t in noise.items()}


METHOD = ClientMethod(perfedavg.METHOD, PerFedAvgTrainer)
