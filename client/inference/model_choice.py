"""Choice of the parameters that a client uses: shared, of its cluster, personalized, or fitted here."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import torch

from client.tasks.learner import Learner
from client.training.foresight import training_loss
from client.training.stacks import row, stack
from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.base import MethodOptions
from common.models import build_model, models_of_run, tensors
from common.tasks.registry import TASKS
from common.wire.messages import TrainRequest

if TYPE_CHECKING:
    from torch import nn

    from client.state import ClientMemory


def models_of_client(options: MethodOptions, model: Arrays, state: ClientMemory) -> dict[str, Arrays]:
    """Return a client's models by prefix of their metrics: first the used one, then the shared one."""
    from client.trainers.registry import build_trainer
    from client.training.state import DELIVERED, HEAD, PERSONALIZED

    own_groups = [state.groups[name] for name in (DELIVERED, f"{HEAD}.after") if name in state.groups]
    head = next(filter(None, own_groups), {})
    shared = {**model, **{n: t.numpy() for n, t in head.items()}} if head else model
    if options.capabilities().own_model == "none":
        return {"": shared}
    personalized = {n: t.numpy() for n, t in state.groups.get(f"{PERSONALIZED}.after", {}).items()}
    return {"": personalized or shared, build_trainer(options).shared_as: shared}


def has_own_parameters(config: RunConfig, names: Collection[str]) -> bool:
    """Return True if each client keeps a personalized model, or private ones of these parameters.

    Names of clustered models have a prefix: `0/name`.
    """
    names = {name.partition("/")[2] or name for name in names}
    return config.capabilities.own_model != "none" or bool(TASKS[config.task].private(names, config.capabilities))


def fit_model(config: RunConfig, learner: Learner, trained: Arrays, statics: Arrays) -> Arrays:
    """Return the model that a client without state of the run uses.

    It is the model of the cluster with the lowest training loss on the client's data. If the method leaves parameters with the
    client, one round of training on these data follows; nothing is sent.
    """
    from client.state import MemoryStore
    from client.trainers.registry import build_trainer
    from client.training.local_round import train
    from client.training.participant import ADAPT, Participant

    models = models_of_run(trained)
    if not learner.examples:
        return models[0]
    model = models[0]
    if len(models) > 1:
        model = min(models, key=lambda one: training_loss(learner, one, statics))
    store, request = MemoryStore(), TrainRequest(1, "", model, statics=statics)
    chosen, about = config.method_options, ("", config.run_id, config.seed, learner, store, request)
    adapted = build_trainer(chosen).personalize(Participant(*about, chosen.steps(ADAPT)))
    if adapted is not None:
        return models_of_client(chosen, model, adapted)[""]
    if has_own_parameters(config, model):
        train(chosen, [Participant(*about, chosen.steps(request.phase))])
    return models_of_client(chosen, model, store.load(config.run_id))[""]


def fit_client_only(config: RunConfig, learner: Learner, trained: Arrays) -> Arrays:
    """Fit the parameters that never leave a client to its data, for as many steps as in the run."""
    private = {name for name in trained if TASKS[config.task].is_client_only(name)}
    if not private:
        return trained
    from client.training.steps import build_step, descend, initialize_moments, plain_gradient

    options, start, rest = config.method_options, stack([tensors(trained)]), set(trained) - private
    steps, generator = config.rounds * options.local_steps, torch.Generator().manual_seed(config.seed)
    descent = descend(
        plain_gradient(learner),
        start,
        batch=stack([learner.batch(TrainRequest(config.rounds, "", trained))]),
        inputs=stack([learner.step_inputs(steps, generator)]),
        steps=steps,
        step=build_step(options),
        moments=initialize_moments(options, start),
        clip_norm=options.clip_norm,
        frozen=lambda t: rest,
    )
    return {**trained, **{name: row(descent.params, 0)[name].numpy() for name in private}}


def trained_network(config: RunConfig, vocabulary: Any, trained: Arrays) -> tuple[nn.Module, Arrays]:
    """Return the module with the trained parameters, and the summed statistics of the run.

    Parameters that the run did not save keep their initial values.

    Raises:
        ConfigError: The run has a model for each cluster.
    """
    if len(models := models_of_run(trained)) > 1:
        raise ConfigError(
            f"run '{config.run_id}' has {len(models)} models, one for each cluster of clients;"
            " export a run of another method, such as fedavg"
        )
    module = build_model(TASKS[config.task], config.task_run(TASKS[config.task], vocabulary))
    trainable = dict(module.named_parameters())
    with torch.no_grad():
        for name, values in tensors({name: a for name, a in trained.items() if name in trainable}).items():
            trainable[name].copy_(values)
    statics: dict[str, Array] = {name: a for name, a in trained.items() if name not in trainable}
    return module, statics
