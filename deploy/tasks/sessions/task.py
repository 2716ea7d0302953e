"""Sessions task at the command line."""

from collections.abc import Iterator, Mapping

from common.errors import DataError
from deploy.tasks.query import KEEP, item_options, read_filter, serving_in, with_titles
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun

SHOWN_CLICKS = 3
"""Number of last clicks in a title."""


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return the next items of a session."""
    from client.tasks.lists import label_of
    from client.tasks.sessions.inference import clicks_of, next_items, seen_items
    from client.training.comparison import describe_choice

    visitor = run.unit(query["user"], "user", query["test"])
    anonymous = bool(query["session"]) and not query["user"]
    if query["session"]:
        earlier, clicks = visitor.sessions, clicks_of(query["session"], run.vocabulary)
    elif visitor.sessions:
        earlier, clicks = visitor.sessions[:-1], visitor.sessions[-1]
    else:
        raise DataError(f"{visitor.name} has no session; give the clicks with --session")
    history, names = () if anonymous else earlier, run.vocabulary.items
    chosen, notes = read_filter(query, names, KEEP)
    titles, baseline = run.read_titles(), run.baseline(run.only_model)
    about = run.config, run.vocabulary, run.only_model
    found = next_items(*about, clicks, history, top, chosen, titles, baseline)
    last = ", ".join(label_of(names[k], titles) for k in clicks[-SHOWN_CLICKS:])
    columns, rows = with_titles("item", found, titles)
    return Answers(
        f"{'anybody' if anonymous else visitor.name} after {last}",
        "item",
        {"next item": columns, "score": ("score",), "why": ("why",)},
        rows,
        (*notes, *describe_choice(baseline)),
        empty=chosen.reason_of_none(len(names), seen_items(clicks, history)),
        what="item",
        user="" if anonymous else visitor.name,
    )


def everybody(run: TrainedRun, query: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield a query for each visitor with a session."""
    for visitor in run.read(query["test"]).units:
        if visitor.sessions or query["session"]:
            yield {**query, "user": visitor.name}


TASK = DeployTask(
    name="sessions",
    query=(
        QueryOption("user", "Recommend to this user of the data; default: the first."),
        QueryOption("session", "Continue these clicks: item names separated by commas; default: the last session."),
        QueryOption("test", "Hold out the sessions of this file.", "FILE"),
        *item_options(KEEP),
    ),
    answer=answer,
    everybody=everybody,
    serving=serving_in("deploy.tasks.sessions.model_service", "user"),
)
