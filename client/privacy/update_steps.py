"""Steps before and after the noise on an update, by the run's configuration."""

from collections.abc import Callable
from functools import partial

import numpy as np

from client.privacy.full_tables import FullTables
from client.privacy.plain_updates import encode_plain
from client.privacy.pseudo_items import AddPseudoItems
from client.privacy.transforms import Encode, Select, update_of
from client.secure.blocks import Blocks
from client.secure.upload import SumPart
from client.tasks.learner import HasItemRows
from client.trainers.registry import build_trainer
from client.training.client_state import KeepReleased
from client.training.cohort import zero_reply
from client.training.failures import DivergedError, ZerosOnFailure
from client.training.participant import Participant
from common.config.gathered_rows import names_rows
from common.config.run import RunConfig
from common.wire.messages import LOCAL


def select_steps(
    config: RunConfig, participant: Participant, generator: Callable[[], np.random.Generator]
) -> tuple[Select, ...]:
    """Return the steps on exact values: zeros for failed work, full tables, pseudo items, blocks of a sum.

    Args:
        config: Configuration of the run.
        participant: The client, with the reservation of the release.
        generator: Factory of the random generator that draws pseudo items.
    """
    select: list[Select] = []
    learner, request = participant.learner, participant.request
    if participant.reservation:
        zeros = partial(zero_reply, config.method_options, learner, request, participant.steps)
        failures = DivergedError if config.privacy.unit == "record" else Exception
        select.append(ZerosOnFailure(lambda: update_of(zeros()), failures))
    if config.task_options.gathers_rows and not names_rows(config):
        select.append(FullTables(request.model))
    rows = config.task_options.named_rows
    if rows and isinstance(learner, HasItemRows):
        select.append(AddPseudoItems(learner, request.round, rows.pseudo, generator))
    if participant.part:
        select.append(_blocks(config, participant.part, participant.steps))
    return tuple(select)


def encode_steps(config: RunConfig, participant: Participant) -> tuple[Encode, ...]:
    """Return the steps on released values: client state takes its part, plain tables become sparse rows."""
    if participant.reservation:
        if participant.request.phase != LOCAL:
            return ()
        keep, part = KeepReleased(build_trainer(config.method_options), participant), participant.part
        return (_blocks(config, part, participant.steps).restore, keep) if part else (keep,)
    return () if participant.part else encode_plain(config, participant)


def _blocks(config: RunConfig, part: SumPart, steps: int) -> Blocks:
    return Blocks(config, steps, part.cluster, part.terms.clip)
