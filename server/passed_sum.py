"""Sum of the training replies that a gateway passes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Error, RecordDict

from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.errors import WireError
from common.reply_lengths import Lengths, find_doubtful, typical
from common.reply_sums import BlockReply
from common.tasks.registry import TASKS
from common.wire.codec import decode, encode
from common.wire.hub_sums import write_sum
from common.wire.hubs import Answer, SumBlob
from common.wire.messages import FAILED, TrainReply, TrainRequest
from server.aggregation.folded_replies import collect, select_whole
from server.aggregation.lengths import measure
from server.aggregation.round_results import Reply
from server.exchange import content_size
from server.plausible import check_size, limit_reply
from server.strategies.replies import ExpectedReply, accept_reply


@dataclass(frozen=True)
class SumParts:
    """Run, request and clients of a sum of replies.

    Args:
        config: Configuration of the run.
        request: The request.
        examples: Client -> number of records at enrolment.
    """

    config: RunConfig
    request: TrainRequest
    examples: Mapping[str, int]

    def examine(self, client: str, content: RecordDict) -> Reply:
        """Return the valid reply in an answer.

        Raises:
            WireError: It has none.
        """
        options, capabilities = self.config.method_options, self.config.capabilities
        check_size(content_size(content), limit_reply(self.request.model))
        expected = ExpectedReply(
            round=self.request.round,
            max_steps=options.steps(self.request.phase),
            max_examples=self.examples[client],
            task=TASKS[self.config.task],
            model=self.template,
            needs_gradient=capabilities.needs_gradient,
            encoding=self.config.federation.encoding,
        )
        reply, rows = accept_reply(decode(TrainReply, content), expected, self.config.task_options)
        return Reply(client, options.weight(reply.examples), reply, rows, measure(reply))

    @property
    def template(self) -> Arrays:
        """Part of the model that clients send updates of."""
        private = TASKS[self.config.task].private(self.request.model, self.config.capabilities)
        return {name: a for name, a in self.request.model.items() if name not in private}


def add_up(
    parts: SumParts, answers: Mapping[str, Answer], reference: Lengths
) -> tuple[dict[str, Answer], SumBlob | None, Lengths]:
    """Return the answers, the sum with the arrays that they lack, and typical lengths of replies.

    Sums of hubs and replies of single clients are checked as a server checks them, and added up. A reply that the server may
    leave out is passed on as it is.

    Args:
        parts: Run, request and clients.
        answers: Client -> its answer.
        reference: Typical lengths of the gateway's last sum.
    """
    usable, rejected = _examine(parts, answers)
    capabilities = parts.config.capabilities
    usable = select_whole(usable, rejected, parts.template, capabilities)
    passed: dict[str, Answer] = {**answers, **{name: Error(FAILED, why) for name, why in rejected.items()}}
    lengths = typical([reply.lengths for reply in usable])
    alone = _find_alone(parts.config, usable, reference or lengths)
    summed = [reply for reply in usable if reply.client not in alone]
    if not summed:
        return passed, None, lengths
    total = collect(summed, per_step=capabilities.per_step, with_magnitude=capabilities.needs_magnitude).sums
    passed |= {reply.client: encode(replace(reply.train, update={}, gradient={})) for reply in summed}
    return passed, SumBlob(tuple(reply.client for reply in summed), write_sum(total, _lengths(summed))), lengths


def _examine(parts: SumParts, answers: Mapping[str, Answer]) -> tuple[list[Reply], dict[str, str]]:
    usable: list[Reply] = []
    rejected: dict[str, str] = {}
    for name, answer in sorted(answers.items()):
        if isinstance(answer, Error):
            continue
        try:
            usable.append(parts.examine(name, answer))
        except WireError as error:
            rejected[name] = str(error)
    return usable, rejected


def _find_alone(config: RunConfig, usable: Sequence[Reply], reference: Lengths) -> set[str]:
    """Return the single replies that stay by themselves; those of a hub's sum cannot."""
    single = [reply for reply in usable if not isinstance(reply.train, BlockReply)]
    if not single:
        return set()
    limits = np.full(len(single), config.federation.norm_bound)
    losses = np.array([reply.train.loss for reply in single])
    return {single[k].client for k in find_doubtful(reference, limits, _lengths(single), losses)}


def _lengths(replies: Sequence[Reply]) -> dict[str, Floats]:
    """Return kind -> length of each reply."""
    kinds = sorted({kind for reply in replies for kind in reply.lengths})
    return {kind: np.array([reply.lengths.get(kind, 0.0) for reply in replies]) for kind in kinds}
