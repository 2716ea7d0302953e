"""Sessions task at the command line."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from common.errors import DataError
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun

if TYPE_CHECKING:
    from client.tasks.sessions.data.visitors import Visitor
    from common.tasks.sessions.vocabulary import Clicks, Items

SHOWN_CLICKS = 3
"""Number of last clicks in a title."""


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return the next items of a session."""
    from client.tasks.sessions.inference import next_items
    from deploy.tasks.units import find_unit

    visitor = find_unit(run.read(query["test"]), query["user"], run.data, "user")
    anonymous = bool(query["session"]) and not query["user"]
    earlier, clicks = _session(query["session"], visitor, run.vocabulary)
    found = next_items(run.config, run.vocabulary, run.model, clicks, () if anonymous else earlier, top)
    shown = ", ".join(run.vocabulary.items[click] for click in clicks[-SHOWN_CLICKS:])
    title = f"{'anybody' if anonymous else visitor.name} after {shown}"
    columns = {"next item": ("item",), "probability": ("probability",)}
    return Answers(title, "item", columns, [vars(one) for one in found])


def _session(text: str, visitor: "Visitor", items: "Items") -> "tuple[tuple[Clicks, ...], Clicks]":
    """Return the visitor's earlier sessions and the clicks of the text, or of the last session."""
    from client.tasks.sessions.inference import clicks_of

    if text:
        return visitor.sessions, clicks_of(text, items)
    if not visitor.sessions:
        raise DataError(f"{visitor.name} has no session; give the clicks with --session")
    return visitor.sessions[:-1], visitor.sessions[-1]


TASK = DeployTask(
    name="sessions",
    query=(
        QueryOption("user", "Recommend to this user of the data; default: the first."),
        QueryOption("session", "Continue these clicks: item names separated by commas; default: the last session."),
        QueryOption("test", "Hold out the sessions of this file.", "FILE"),
    ),
    answer=answer,
)
