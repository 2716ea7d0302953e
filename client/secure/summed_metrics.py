"""Metrics of a client in a secure sum."""

from collections.abc import Callable

from client.enrolment import EnrolledRun
from client.privacy.release import Releaser
from client.privacy.transforms import Update, UpdateChain
from client.secure.accept_terms import ExpectedSum
from client.secure.upload import ForSum, SumPart
from client.training.failures import ZerosOnFailure
from common.config.secure_sums import metric_cost
from common.errors import RefusedError
from common.secure.terms import SumTerms
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import summed_metrics
from common.wire.messages import EvaluateReply, EvaluateRequest

CHANNEL = "evaluate"
"""Channel of the sums of metrics.

Its numbers are those of evaluations, and 0 for the only one with noise.
"""


def upload_metrics(
    client: str, run: EnrolledRun, releaser: Releaser, request: EvaluateRequest, measure: Callable[[], EvaluateReply]
) -> EvaluateReply:
    """Return a client's masked metrics.

    Raises:
        WireError: The terms of the sum are malformed.
        RefusedError: The terms are not acceptable, the model is not final in a run with noise, or a limit is exceeded.
    """
    rho = metric_cost(run.config)
    if run.helpers is None or (rho and not request.final):
        raise RefusedError("the run's configuration does not announce sums of metrics of this model")
    metrics = summed_metrics(TASKS[run.config.task], noised=rho > 0)
    expected = ExpectedSum(
        run=run.run,
        round=0 if rho else SumTerms.from_json(request.terms).round,
        channel=CHANNEL,
        roster=run.helpers.roster,
        min_sum=releaser.policy.min_sum,
        template=metrics.template,
        rho=rho,
        clip=metrics.clip,
        sign="positive" if rho else "signed",
    )
    part = SumPart(client, expected.accept(request.terms), expected.roster, metrics.template)
    reservation = releaser.budget.reserve_metrics_in_sums(run.config, run.run) if rho else None
    select = (ZerosOnFailure(lambda: Update(metrics.template)),) if reservation else ()
    chain = UpdateChain(select, ForSum(part, reservation, releaser.generator))

    def values() -> Update:
        reply = measure()
        return Update(metrics.pack(reply.metrics, reply.weights, reply.paired))

    released = chain(values)
    head = reservation.head if reservation else ""
    return EvaluateReply(request.round, {}, {}, masked=released.masked, sealed=released.sealed, ledger=head)
