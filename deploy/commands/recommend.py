"""`recommend` and `report`: what to do with a finished run."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from client.tasks.sessions.data.visitors import Visitor
from common.errors import ConfigError, DataError
from common.options import hint
from common.tasks.registry import read_vocabulary
from common.tasks.sessions.vocabulary import Clicks, Items
from deploy.cli import options as o
from deploy.commands.launch import STATE
from deploy.commands.market_model import Holder, with_own_part
from deploy.commands.runs import config_of, newest, run_of
from server.artifacts import RunDirectory

if TYPE_CHECKING:
    from client.tasks.markets.inference import Companion
    from client.tasks.ratings.inference import Suggestion
    from client.tasks.rules.inference import Recommendation
    from client.tasks.sessions.inference import NextItem

P = TypeVar("P")

SHOWN = {
    "rule": ("rule", "rule to add", "probability"),
    "item": ("item", "next item", "probability"),
    "product": ("product", "not rated yet", "rating"),
    "companion": ("label", "goes with it", "score"),
}
"""Of each kind of recommendation: what is shown of it, under which heading, and its number."""

ASKED: dict[str, tuple[str, ...]] = {
    "rules": ("user",),
    "sessions": ("user", "session", "test"),
    "ratings": ("user",),
    "markets": ("market", "item", "client"),
}
"""What may be asked of a run, by its task."""

SEEN = 3
"""Clicks that a title names, the last ones."""


def recommend(
    user: Annotated[str, typer.Option(help="Who it is for, as named in the data; default: the first.")] = "",
    data: o.Data = "demo",
    test: o.Test = "",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    session: Annotated[str, typer.Option(help="Clicks so far, item names separated by commas.")] = "",
    market: Annotated[str, typer.Option(help="Task markets: which one; default: the first in the data.")] = "",
    item: Annotated[str, typer.Option(help="Task markets: what they are to go with, by id or title.")] = "",
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    run: Annotated[
        str, typer.Option(help="The finished run, by name or folder; default: the newest that can be asked so.")
    ] = "",
    client: Annotated[
        str, typer.Option(help="Task markets: whose own part of the model to use; default: who trained on these data.")
    ] = "",
    state_dir: Annotated[
        Path, typer.Option(help="Where clients keep their private state, as `join` was told.")
    ] = STATE,
    json: o.AsJson = False,
) -> None:
    """What a finished run's model recommends, best first.

    Rules to add to a home, a session's next items, products not rated yet, or items that go with an item. Where a client here
    took part with that market's data, or adapted the model to them, its own part of the model is used. Nothing leaves this
    machine.
    """
    from client.data.read import (
        read_all,
        with_test,  # torch takes seconds; --help need not wait for it
    )
    from client.tasks.markets.inference import companions, item_named, labelled
    from client.tasks.ratings.inference import suggestions
    from client.tasks.rules.inference import recommend as rules_to_add
    from client.tasks.sessions.inference import next_items

    asked = {"user": user, "session": session, "test": test, "market": market, "item": item, "client": client}
    folder = _run_for(run, {name for name, value in asked.items() if value})
    config, name = config_of(folder), folder.path.name
    names: Any = read_vocabulary(config.task, folder.catalogue())
    model, _ = folder.load_model()
    dialect = o.dialect_of(data, columns, decimal, dates)
    dataset = read_all(config.task, with_test(config.task, data, test), vocabulary=names, dialect=dialect)
    found: Sequence[Recommendation | NextItem | Suggestion | Companion]
    match config.task:
        case "rules":
            home = _person(user, {home.name: home for home in dataset.units}, data)
            found, title, what = rules_to_add(config, names, model, home, top), home.name, "rule"
        case "sessions":
            visitor = _person(user, {v.name: v for v in dataset.units}, data)
            anybody = bool(session) and not user
            earlier, clicks = _session(session, visitor, names)
            found = next_items(config, names, model, clicks, () if anybody else earlier, top)
            seen = ", ".join(names.items[click] for click in clicks[-SEEN:])
            title, what = f"{'anybody' if anybody else visitor.name} after {seen}", "item"
        case "ratings":
            rater = _person(user, {r.name: r for r in dataset.units}, data)
            found = suggestions(config, names, model, rater, top)
            title, what = f"{rater.name}, whose own mean is {found[0].own_mean:.2f}" if found else rater.name, "product"
        case "markets":
            shop = _named(market, {m.name: m for m in dataset.units}, data, "market")
            other = item_named(_given(item), names)
            model = with_own_part(name, names, model, Holder(data, client, state_dir))
            found = companions(config, names, model, shop, other, top)
            title, what = f"{labelled(names, other)} in {shop.name}", "companion"
        case _:
            raise ConfigError(f"run '{name}' forecasts readings; ask it with fedloom forecast")
    if json:
        o.print_object([vars(r) for r in found])
        return
    o.out.print(f"{title}, by run {name}", soft_wrap=True, markup=False, highlight=False)
    o.out.print(_shown(found, what) if found else f"no {what} is left to recommend")


def _run_for(run: str, asked: Set[str]) -> RunDirectory:
    """The run that is named, or the newest that can use all that is asked: no option goes unheard.

    Raises:
        ConfigError: There is none, or it cannot.
    """
    able = [task for task, told in ASKED.items() if asked <= set(told)]
    folder = run_of(run) if run else newest(able or list(ASKED))
    name, task = folder.path.name, config_of(folder).task
    if task in ASKED and task not in able:
        no_use = sorted(asked - set(ASKED[task]))[0]
        takes = ", ".join(f"--{one}" for one in ASKED[task])
        raise ConfigError(f"--{no_use} is of no use to run '{name}', which is of task {task} and takes {takes}")
    return folder


def _shown(found: Sequence[object], what: str) -> Table:
    column, heading, number = SHOWN[what]
    table = Table("", heading, number)
    for place, r in enumerate(found, start=1):
        table.add_row(str(place), Text(str(getattr(r, column))), f"{getattr(r, number):.2f}")
    return table


def _person(user: str, people: dict[str, P], data: str) -> P:
    return _named(user, people, data, "user")


def _named(name: str, known: dict[str, P], data: str, what: str) -> P:
    """The one of that name, or the first."""
    if name and name not in known:
        raise DataError(f"no {what} '{name}' among its {len(known)} {what}s{hint(name, known)}", data)
    return known[name or next(iter(known))]


def _given(item: str) -> str:
    if not item:
        raise ConfigError("say with --item which item others are to go with, by its id or title")
    return item


def _session(session: str, visitor: Visitor, items: Items) -> tuple[tuple[Clicks, ...], Clicks]:
    """Earlier sessions and the clicks so far: those given, or else the person's last session."""
    from client.tasks.sessions.inference import clicks_of

    if session:
        return visitor.sessions, clicks_of(session, items)
    if not visitor.sessions:
        raise DataError(f"{visitor.name} has no session yet; give the clicks so far with --session")
    return visitor.sessions[:-1], visitor.sessions[-1]


def report(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs, by name or folder; default: the newest.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the page goes; default: into the first run's folder.")] = None,
    json: o.AsJson = False,
) -> None:
    """Write report.html: curves, per-client spread, timings, configuration; several runs are overlaid."""
    from deploy.report.render import render

    folders = [run_of(name).path for name in runs] if runs else [newest().path]
    page = render(folders, out or folders[0] / "report.html")
    if json:
        o.print_object({"report": str(page)})
        return
    o.out.print(str(page), soft_wrap=True, markup=False, highlight=False)
