"""Markets task at the command line and in reports."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from common.errors import ConfigError
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun

if TYPE_CHECKING:
    from deploy.report.run import RunRecord
    from deploy.report.sections import Section


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return items of a market that go with an item."""
    from client.tasks.markets.inference import companions, item_named, labelled
    from deploy.tasks.markets.model_choice import model_of
    from deploy.tasks.units import find_unit

    market = find_unit(run.read(""), query["market"], run.data, "market")
    if not query["item"]:
        raise ConfigError("--item is missing; name the item by its id or title")
    item = item_named(query["item"], run.vocabulary)
    model, note = model_of(run, query["client"])
    found = companions(run.config, run.vocabulary, model, market, item, top)
    title = f"{labelled(run.vocabulary, item)} in {market.name}"
    columns = {"goes with it": ("item", "title"), "score": ("score",)}
    return Answers(title, "companion", columns, [vars(one) for one in found], (note,))


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
    ),
    answer=answer,
    sections=sections,
)
