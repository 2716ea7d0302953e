"""Markets task at the command line and in reports."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from common.errors import ConfigError
from deploy.tasks.query import HIDE, item_options, read_filter, serving_in
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun

if TYPE_CHECKING:
    from deploy.pages.view import RunRecord, Section


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return items of a market that go with an item."""
    import numpy as np

    from client.tasks.markets.inference import companions, item_named, labelled, seen_companions
    from client.training.comparison import describe_choice
    from deploy.tasks.markets.model_service import model_of

    market = run.unit(query["market"], "market")
    if not query["item"]:
        most = run.vocabulary.items[np.bincount(market.pairs.ravel(), minlength=1).argmax()]
        raise ConfigError(f"--item is missing; name an item of market {market.name} by its id or title, such as {most}")
    item = item_named(query["item"], run.vocabulary)
    model, note = model_of(run, query["client"])
    chosen, notes = read_filter(query, run.vocabulary.items, HIDE)
    baseline = run.baseline(model)
    found = companions(run.config, run.vocabulary, model, market, item, top, chosen, by_walk=bool(baseline))
    return Answers(
        f"{labelled(run.vocabulary, item)} in {market.name}",
        "companion",
        {"goes with it": ("item", "title"), "score": ("score",), "why": ("why",)},
        [vars(one) for one in found],
        (note, *notes, *describe_choice(baseline)),
        empty=chosen.reason_of_none(len(run.vocabulary.items), seen_companions(run.config, market, item)),
        what="item",
        user=run.vocabulary.items[item],
    )


def every_item(run: TrainedRun, query: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield a query for each item with a record in the market, or for the named item."""
    import numpy as np

    market = run.unit(query["market"], "market")
    sold = np.unique(np.concatenate([market.ratings[:, 1], market.pairs.ravel()])).tolist()
    for name in [query["item"]] if query["item"] else [run.vocabulary.items[k] for k in sold]:
        yield {**query, "market": market.name, "item": name}


def sections(records: "Sequence[RunRecord]") -> "Iterator[Section]":
    """Yield the metrics of each market."""
    from deploy.tasks.markets.figures import bars

    yield bars(records)


TASK = DeployTask(
    name="markets",
    query=(
        QueryOption("market", "Recommend in this market; default: the first of the data."),
        QueryOption("item", "Recommend items that go with this one, by id or title."),
        QueryOption("client", "Use the model that this client stored; default: who trained on the data."),
        *item_options(HIDE),
    ),
    answer=answer,
    everybody=every_item,
    sections=sections,
    serving=serving_in("deploy.tasks.markets.model_service", "market"),
)
