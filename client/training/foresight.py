"""Foresight: what clients' replies need of their models, computed stacked before they reply.

A client without foresight is a stack of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch

from client.tasks.learner import AnswersTogether, Learner, is_unstacked, targets_of
from client.training.stacks import Tensors, at, stack
from common.arrays import Arrays
from common.models import tensors
from common.wire.messages import TrainRequest

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

LOSS, STEPS = "loss", 8
"""Kind of question: L_k on the training data, the mean over 8 steps whose inputs have seed 0."""


@dataclass(frozen=True, eq=False)
class Question:
    """Question to the models of one client.

    Args:
        learner: Learner of the client.
        kind: Data to which they are applied, as `AnswersTogether.questions` names them, or `LOSS`.
        models: The models; all clients of a stack have equally many.
        statics: Summed statistics of the run.
    """

    learner: Learner
    kind: str
    models: Sequence[Arrays]
    statics: Arrays


@dataclass(frozen=True, eq=False)
class Foresight:
    """Foresight of one client's model.

    Args:
        output: Output of the network with the padding of its stack; empty if the learner has no such questions.
        derived: What the learner has derived from it, for other metrics of the same evaluation.
    """

    output: Tensor
    derived: dict[Any, Any] = field(default_factory=dict)


Answers = dict[tuple[int, str], list[tuple[Arrays, Foresight]]]
"""Learner and kind of question -> answer of each model."""

_foreseen: ContextVar[Answers | None] = ContextVar("foreseen", default=None)


@contextmanager
def foreseen(questions: Iterable[Question]) -> Iterator[None]:
    """Answer the questions to clients of one run stacked; `ask` has the answers inside the block.

    A client meets an error when it asks itself.
    """
    earlier, stacks = _foreseen.get() or {}, dict[tuple[str, int, int], list[Question]]()
    for question in questions:
        if (id(question.learner), question.kind) not in earlier:
            alone = id(question.learner) if is_unstacked(question.learner) else 0
            stacks.setdefault((question.kind, len(question.models), alone), []).append(question)
    answers: Answers = {**earlier} if stacks else earlier
    for cohort in stacks.values():
        with suppress(Exception):
            for question, found in zip(cohort, _answer(cohort), strict=True):
                answers[id(question.learner), question.kind] = [*zip(question.models, found, strict=True)]
    token = _foreseen.set(answers)
    try:
        yield
    finally:
        _foreseen.reset(token)


def ask(learner: Learner, kind: str, model: Arrays, statics: Arrays) -> Foresight:
    """Return the answer of a client's model."""
    for asked, answer in (_foreseen.get() or {}).get((id(learner), kind), ()):
        if _are_equal(asked, model):
            return answer
    [[answer]] = _answer([Question(learner, kind, [model], statics)])
    return answer


def derive(learner: Learner, kind: str, model: Arrays, statics: Arrays, compute: Callable[[Tensor], T]) -> T:
    """Return what `compute` makes of a model's answer; it is made once while the answer is foreseen."""
    answer = ask(learner, kind, model, statics)
    if not answer.derived:
        answer.derived[""] = compute(answer.output)
    found: T = answer.derived[""]
    return found


def training_loss(learner: Learner, model: Arrays, statics: Arrays) -> float:
    """Return L_k of a model on the training data."""
    return float(ask(learner, LOSS, model, statics).output)


def _are_equal(first: Arrays, other: Arrays) -> bool:
    same_names = first is other or first.keys() == other.keys()
    return same_names and all(a is other[n] or np.array_equal(a, other[n]) for n, a in first.items())


def _answer(cohort: Sequence[Question]) -> list[list[Foresight]]:
    """Return the answers of each client's models."""
    empty = torch.zeros(0)
    answers = [[Foresight(empty) for _ in question.models] for question in cohort]
    is_loss, inputs = cohort[0].kind == LOSS, dict[int, Tensors]()
    if isinstance(cohort[0].learner, AnswersTogether) and not is_loss:
        found = (cast(AnswersTogether, q.learner).questions(q.kind, q.statics) for q in cohort)
        inputs = {k: each for k, each in enumerate(found) if each}
    asked = [*range(len(cohort))] if is_loss else [*inputs]
    if not asked:
        return answers
    questions = [cohort[k] for k in asked]
    output = _losses(questions) if is_loss else _outputs(questions[0], stack([*inputs.values()]))
    for j in range(len(questions[0].models)):
        with torch.no_grad():
            stacked = output(*_stack_models([question.models[j] for question in questions]))
        for k, row in zip(asked, stacked, strict=True):
            answers[k][j] = Foresight(row)
    return answers


Dimensions = dict[str, int | None]
"""Dimension of clients of each parameter; None if it is the same for all."""

Output = Callable[[Tensors, Dimensions], "Tensor"]
"""Parameters of a stack's models and their dimensions -> outputs, K × …."""


def _stack_models(models: Sequence[Arrays]) -> tuple[Tensors, Dimensions]:
    dims = {n: None if all(m[n] is a for m in models) else 0 for n, a in models[0].items()}
    params = tensors({n: models[0][n] for n, dim in dims.items() if dim is None})
    if len(params) < len(dims):
        params |= stack([tensors({n: model[n] for n, dim in dims.items() if dim == 0}) for model in models])
    return {n: params[n] for n in dims}, dims  # `vmap` pairs both by their order


def _outputs(first: Question, inputs: Tensors) -> Output:
    """Return the function to outputs, K × rows × …; an equal model takes all clients' rows at once."""
    answer, clients = cast(AnswersTogether, first.learner).answer, len(next(iter(inputs.values())))

    def output(params: Tensors, dims: Dimensions) -> Tensor:
        if any(dim == 0 for dim in dims.values()):
            return torch.func.vmap(answer, (dims, 0))(params, inputs)
        rows = answer(params, {n: x.flatten(0, 1) for n, x in inputs.items()})
        return rows.reshape(clients, -1, *rows.shape[1:])

    return output


def _losses(cohort: Sequence[Question]) -> Output:
    pairs = [(q.learner, TrainRequest(0, "", q.models[0], statics=q.statics)) for q in cohort]
    batch = stack([learner.batch(request) for learner, request in pairs])
    inputs = stack([learner.step_inputs(STEPS, torch.Generator().manual_seed(0)) for learner, _ in pairs])
    targets = {k: target for k, pair in enumerate(pairs) if (target := targets_of(*pair))}
    loss = cohort[0].learner.loss

    def output(params: Tensors, dims: Dimensions) -> Tensor:
        losses = []
        for t in range(STEPS if inputs else 1):  # without inputs all steps are equal
            step = {n: x[:, t] for n, x in inputs.items()}
            if targets:
                of_each = [{n: p if dims[n] is None else p[k] for n, p in params.items()} for k in targets]
                step |= stack([targets[k](of_each[k], at(batch, k), at(step, k)) for k in targets])
            if is_unstacked(cohort[0].learner):
                losses.append(loss(params, at(batch, 0), at(step, 0)).unsqueeze(0))
            else:
                losses.append(torch.func.vmap(loss, (dims, 0, 0))(params, batch, step))
        return torch.stack(losses).mean(0)

    return output
