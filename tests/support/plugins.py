"""Entry points of plug-in packages: a correct method and task, and faulty ones."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from client.tasks.registry import CLIENT_TASKS
from client.tasks.rules.task import TASK as RULES
from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.registry import CLIENT_METHODS
from client.training.stacks import Tensors
from common.api import Arrays, MethodOptions, MethodSpec, PlannerOptions, PlannerSpec, sub
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.tasks.registry import TASKS
from server.api import Contribution, Groups, Method, RoundContext, Schedule, ServerMethod, ServerPlanner
from server.methods.registry import SERVER_METHODS
from server.planning.registry import SERVER_PLANNERS

REGISTRIES = (TASKS, CLIENT_TASKS, METHODS, SERVER_METHODS, CLIENT_METHODS, PLANNERS, SERVER_PLANNERS)


class Odd(MethodOptions):
    """FedAvg under another name."""

    name: ClassVar[str] = "odd"


class Noiseless(PlannerOptions):
    """Planner of runs without noise."""

    name: ClassVar[str] = "noiseless"

    needs_noise: ClassVar[bool] = False


class OddStep(Method):
    """θ ← θ − Δ̄."""

    def __init__(self, options: Odd) -> None:
        pass

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        return sub(model, total.mean_update()), state


class Uploading(FedAvgTrainer):
    """FedAvg's trainer that sends a changed update Δ_k."""

    change: ClassVar[Callable[[Tensors], Tensors]]

    def upload(self, displacement: Tensors) -> Tensors:
        return type(self).change(displacement)


def not_a_number(update: Tensors) -> Tensors:
    return {name: torch.full_like(t, torch.nan) for name, t in update.items()}


def misshapen(update: Tensors) -> Tensors:
    return {name: t.flatten()[:1] for name, t in update.items()}


def with_further_keys(update: Tensors) -> Tensors:
    return {**update, **{f"k{k}": torch.zeros(()) for k in range(10**6)}}


def method_of(change: Callable[[Tensors], Tensors] | None) -> dict[str, dict[str, Any]]:
    """Return entry points of the method `odd`, whose clients change their update."""
    trainer = type("OddTrainer", (Uploading,), {"change": staticmethod(change)}) if change else FedAvgTrainer
    spec = MethodSpec(Odd, "An odd average")
    return {
        "fedloom.methods": {"odd": spec},
        "fedloom.methods.server": {"odd": ServerMethod(spec, OddStep)},
        "fedloom.methods.client": {"odd": ClientMethod(spec, trainer)},
    }


def noiseless() -> dict[str, dict[str, Any]]:
    """Return entry points of the planner `noiseless`, whose rounds cost nothing."""
    spec = PlannerSpec(Noiseless, "No noise")
    build = ServerPlanner(spec, lambda options, budget: Schedule(options, budget, np.zeros(budget.rounds)))
    return {"fedloom.planners": {"noiseless": spec}, "fedloom.planners.server": {"noiseless": build}}


def task_of(learner: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return entry points of the task `cottages`: rules under another name, with another learner."""
    spec = replace(TASKS["rules"], name="cottages")
    client = replace(RULES, spec=spec, learner=learner)
    return {"fedloom.tasks": {"cottages": spec}, "fedloom.tasks.client": {"cottages": client}}


def install(monkeypatch: pytest.MonkeyPatch, groups: Mapping[str, Mapping[str, object]]) -> None:
    """Register objects as entry points; a text stands for an import path."""
    module = ModuleType("a_package")
    monkeypatch.setitem(sys.modules, "a_package", module)
    points = []
    for group, objects in groups.items():
        for name, found in objects.items():
            attribute = f"{group}_{name}".replace(".", "_")
            setattr(module, attribute, found)
            points.append(EntryPoint(name, found if isinstance(found, str) else f"a_package:{attribute}", group))
    monkeypatch.setattr(
        "common.registry.entry_points",
        lambda group="", name="": [p for p in points if group in ("", p.group) and name in ("", p.name)],
    )
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_loaded", {})
        monkeypatch.setattr(registry, "_added", set())
        monkeypatch.delitem(registry.__dict__, "_plugins", raising=False)
        monkeypatch.setitem(registry.__dict__, "_plugins", type(registry)._plugins.func(registry))
