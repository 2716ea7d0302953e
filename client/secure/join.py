"""Parts of a client in the secure sums of a run."""

from client.enrolment import EnrolledRun
from client.policy import Policy
from client.privacy.transforms import update_of
from client.secure.accept_terms import ExpectedSum
from client.secure.blocks import Blocks
from client.secure.upload import SumPart
from client.state import Store
from client.training.cohort import zero_reply
from common.errors import RefusedError
from common.secure.terms import SumTerms
from common.wire.messages import LOCAL, TrainRequest

TRAIN = "train"
"""Channel of the sum of updates."""

GROUP = "sum-group"
"""Document with the last round of a run with groups, and the channel of this client's sum in it."""


def join_training(
    client: str, run: EnrolledRun, policy: Policy, store: Store, request: TrainRequest, steps: int
) -> SumPart | None:
    """Return the part of a client in a round's sum of updates; None under trust `local`.

    Args:
        client: Name of the client.
        run: The run and the client's data.
        policy: The owner's policy.
        store: State of the client.
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
        channel=_channel(run, store, request),
        roster=run.helpers.roster,
        min_sum=policy.min_sum,
        template=Blocks(run.config, steps).of(update_of(zeros)).arrays,
        rho=request.cost if privacy.unit == "client" else 0.0,
        clip=privacy.clip * request.clip,
    )
    return SumPart(client, expected.accept(request.terms), expected.roster, expected.template)


def _channel(run: EnrolledRun, store: Store, request: TrainRequest) -> str:
    """Return the channel of this client's sum; in runs with groups the first one of the round stands.

    Two sums of one round with equal other clients would show the client's own vector.

    Raises:
        RefusedError: The client is in another group of the round.
    """
    groups = run.config.secure_sums.groups
    if groups == 1 or not request.terms:
        return TRAIN
    channel = SumTerms.from_json(request.terms).channel
    if channel not in {f"{TRAIN}/{g}" for g in range(groups)}:
        return f"{TRAIN}/0"  # the terms are then refused
    number, _, before = (store.read(run.run, GROUP) or b"0 ").decode().partition(" ")
    if int(number) == request.round and before != channel:
        raise RefusedError(f"this client's sum of round {request.round} is {before}, not {channel}; nothing was sent")
    store.write(run.run, GROUP, f"{request.round} {channel}".encode())
    return channel
