"""Cohorts whose clients share the rows of tables that they do not touch."""

from collections.abc import Collection, Sequence

from client.own_rows import OwnRows, own_rows_of
from client.stacked_tensors import Tensors
from client.state import ClientMemory
from client.trainers.spec import Cohort, Trainer
from client.training.client_state import stacked_moments
from client.training.cohort_state import settle
from client.training.participant import Participant
from client.training.rows_of_block import find_own_rows
from client.training.stored_stacks import find_stacked, is_one_request
from common.models import tensors


def build_sharing_cohort(
    trainer: Trainer, participants: Sequence[Participant], private: Collection[str]
) -> Cohort | None:
    """Load the client states and build the first parameters, with short tables.

    Return None unless the method treats all numbers alike, and the clients have had all rounds in common.
    """
    options, clients = trainer.options, len(participants)
    is_alike = trainer.acts_on_numbers and options.clip_norm == 0 and options.capabilities().own_model == "none"
    own = find_own_rows(participants) if is_alike and not private else None
    if own is None or not is_one_request([p.request for p in participants]):
        return None
    together, request = _find_state(participants, own), participants[0].request
    if together is None:
        return None
    start = {
        n: t if n in own.tables else t.expand(clients, *t.shape).contiguous()
        for n, t in own.shorten(tensors(request.model)).items()
    }
    control = settle(trainer, together, request, own.shorten(tensors(request.shared)))
    moments = stacked_moments(options, together, request, start, clients)
    nothing: list[Tensors] = [{}] * clients
    return Cohort(participants, start, moments, control, nothing, nothing, private, stays_stacked=True, own=own)


def _find_state(participants: Sequence[Participant], own: OwnRows) -> ClientMemory | None:
    """Return the stacked state of these clients with these rows, an empty one before their first round."""
    memories = [p.store.load(p.run) for p in participants]
    if not any(memory.groups for memory in memories):
        return ClientMemory()
    together = find_stacked(memories, [p.request for p in participants])
    stored = own_rows_of(together.groups) if together else None
    is_same = stored is not None and own.ids.equal(stored.ids) and own.tables == stored.tables
    return together if is_same else None
