"""Check of replies to the invitation: of a client, and of a hub with several."""

from dataclasses import dataclass, field

from flwr.app import Message

from common.errors import WireError
from common.node_names import HOSTED_NAME, NAME
from common.text import count, printable
from common.wire.codec import decode
from common.wire.hubs import split_answers
from common.wire.messages import EnrolReply
from server.exchange import content_size
from server.hub_grid import HubGrid
from server.hub_replies import split_reply
from server.node_directory import NameBindings
from server.plausible import MAX_EXAMPLES, SMALL_REPLY, check_size
from server.roster import EnrolledClient

SUMS = "hubs do not take part in runs with helpers; let each of its clients join by a node of its own"


def accept(node: int, reply: Message, hosted: str = "") -> EnrolledClient:
    """Return the client that a reply to the invitation enrols.

    Args:
        node: Node of the client.
        reply: The reply.
        hosted: Name of the client if it is one of a hub.

    Raises:
        WireError: The client refuses, or its name or numbers are invalid.
    """
    if reply.has_error():
        raise WireError(reply.error.reason or f"error {reply.error.code}")
    check_size(content_size(reply.content), SMALL_REPLY)
    enrolled = decode(EnrolReply, reply.content)
    if not (enrolled.client == hosted if hosted else NAME.fullmatch(enrolled.client)):
        raise WireError(
            f"invalid client name '{printable(enrolled.client, 80)}'; use up to 64 letters, digits, '.', '_' and"
            " '-', starting with a letter or digit (--name)"
        )
    if not 0 <= enrolled.examples <= MAX_EXAMPLES:
        raise WireError(f"{enrolled.examples} training records, at most {MAX_EXAMPLES:,} are accepted")
    about = (enrolled.enrolment, enrolled.examples, enrolled.budget, enrolled.shares_metrics, enrolled.ledger)
    return EnrolledClient(enrolled.client, node, *about)


@dataclass(frozen=True)
class HubAdmission:
    """Admission of hubs to a run.

    Args:
        grid: Grid that gives each client of a hub a node; None refuses all hubs.
        names: Names and numbers of clients that belong to keys.
        refusal: Reason why this run takes no hubs; empty if it does.
    """

    grid: HubGrid | None = None
    names: NameBindings = field(default_factory=NameBindings)
    refusal: str = ""

    def admit(self, reply: Message, hosted: dict[int, str]) -> list[Message]:
        """Admit a hub by its first reply to the invitation, and return the replies of its clients.

        Args:
            reply: Reply of the hub.
            hosted: Node of a hub's client -> its name; gets the clients of this hub.

        Raises:
            WireError: The run takes no hubs, or the hub has too many clients, or names that it must not have.
        """
        if self.grid is None or self.refusal:
            raise WireError(self.refusal or "this server takes no hubs")
        node, clients = reply.metadata.src_node_id, [*split_answers(reply.content)]
        if len(clients) > (most := self.names.most_clients(node)):
            raise WireError(
                f"the key is registered for {count(most, 'client')}, and its hub brings {len(clients):,}; the server's"
                f" owner can set another number with fedloom nodes add KEY --clients {len(clients)}"
            )
        _check_names(clients)
        self.names.resolve(node, clients[0])
        nodes = self.grid.admit(node, clients)
        hosted |= {own: name for name, own in nodes.items()}
        asked = {name: Message(reply.content, own, reply.metadata.message_type) for name, own in nodes.items()}
        return split_reply(reply, asked)


def _check_names(clients: list[str]) -> None:
    found = [HOSTED_NAME.fullmatch(name) for name in clients]
    if None in found:
        wrong = clients[found.index(None)]
        raise WireError(f"invalid client name '{printable(wrong, 80)}' of a hub; use HUB/CLIENT")
    hubs = {one["hub"] for one in found if one}
    if len(hubs) > 1:
        first, second = sorted(hubs)[:2]
        raise WireError(f"a hub has one name, and this one has clients of '{first}' and of '{second}'")
