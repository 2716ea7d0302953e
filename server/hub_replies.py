"""Reply of a hub, as replies of its clients."""

from collections.abc import Mapping

from flwr.app import Error, Message, RecordDict

from common.errors import WireError
from common.reply_sums import BlockReply, ClientBlock
from common.text import printable
from common.wire.codec import Handed, decode, size_without_arrays
from common.wire.hub_sums import read_sum
from common.wire.hubs import Answer, SumBlob, split_answers, sum_of
from common.wire.messages import FAILED, TrainReply

UNANSWERED = "the hub sent no answer of this client"


def split_reply(reply: Message, asked: Mapping[str, Message], *, sums: bool = False) -> list[Message]:
    """Return a reply of each client of a hub to the message that it was sent; `sums` accepts their sum."""
    pairs = [(answer, asked[name]) for name, answer in _answers_of(reply, asked, sums=sums).items()]
    return [
        Message(error=one, reply_to=to) if isinstance(one, Error) else Message(content=one, reply_to=to)
        for one, to in pairs
    ]


def _answers_of(reply: Message, asked: Mapping[str, Message], *, sums: bool) -> dict[str, Answer]:
    if reply.has_error():
        return dict.fromkeys(asked, reply.error)
    try:
        answers = _split(reply.content, asked, sums=sums)
    except WireError as error:
        return dict.fromkeys(asked, Error(FAILED, f"the whole reply of the hub is left out: {error}"))
    return {name: answers.get(name, Error(FAILED, UNANSWERED)) for name in asked}


def _split(content: RecordDict, asked: Mapping[str, Message], *, sums: bool) -> dict[str, Answer]:
    answers = split_answers(content)
    if strangers := answers.keys() - asked.keys():
        raise WireError(f"it answers for '{printable(min(strangers), 40)}', which was not asked")
    total = sum_of(content)
    if total and not sums:
        raise WireError("it sends a sum in place of replies, which this run needs")
    return answers if total is None else answers | _share(total, answers)


def _share(total: SumBlob, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Return the reply of each client in a sum: its own numbers, and the sum that all of them share."""
    sums, lengths = read_sum(total.content, len(total.clients))
    block = ClientBlock(0, total.clients, sums)
    found: dict[str, Answer] = {}
    for k, name in enumerate(total.clients):
        answer = answers[name]
        if isinstance(answer, Error):
            raise WireError(f"the sum has '{printable(name, 40)}', which has failed")
        own = decode(TrainReply, answer)
        about = {kind: float(length[k]) for kind, length in lengths.items()}
        reply = BlockReply(
            round=own.round,
            update={},
            gradient={},
            loss=own.loss,
            examples=own.examples,
            steps=own.steps,
            block=block,
            lengths=about,
            ledger=own.ledger,
        )
        found[name] = Handed(reply, size_without_arrays(reply) + len(total.content) // len(total.clients))
    return found
