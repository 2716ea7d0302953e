"""Parts of a client in the secure sums of a run."""

from client.enrolment import EnrolledRun
from client.policy import Policy
from client.privacy.transforms import update_of
from client.secure.accept_terms import ExpectedSum
from client.secure.blocks import Blocks
from client.secure.upload import SumPart
from client.training.cohort import zero_reply
from common.errors import RefusedError
from common.wire.messages import LOCAL, TrainRequest

TRAIN = "train"
"""Channel of the sum of updates."""


def join_training(client: str, run: EnrolledRun, policy: Policy, request: TrainRequest, steps: int) -> SumPart | None:
    """Return the part of a client in a round's sum of updates; None under trust `local`.

    Args:
        client: Name of the client.
        run: The run and the client's data.
        policy: The owner's policy.
        request: Training request with the terms of the sum.
        steps: Number τ_k of local steps.

    Raises:
        WireError: The terms are malformed.
        RefusedError: They are not those of the round's sum, or the request is for a reply of this client alone.
    """
    if run.helpers is None:
        return None
    if request.phase != LOCAL:
        raise RefusedError(f"this run announces secure sums, and a reply of phase '{request.phase}' is not part of one")
    zeros = zero_reply(run.config.method_options, run.learner, request, steps)
    privacy = run.config.privacy
    expected = ExpectedSum(
        run=run.run,
        round=request.round,
        channel=TRAIN,
        roster=run.helpers.roster,
        min_sum=policy.min_sum,
        template=Blocks(run.config, steps).of(update_of(zeros)).arrays,
        rho=request.cost if privacy.unit == "client" else 0.0,
        clip=privacy.clip * request.clip,
    )
    return SumPart(client, expected.accept(request.terms), expected.roster, expected.template)
