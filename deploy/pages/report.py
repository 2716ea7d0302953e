"""The page report.html: its content section by section, and the command that reproduces a run."""

import json
import math
import shlex
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from common.config.keys import is_ignored
from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.metrics import EXAMPLES
from common.registry import naming_packages
from common.tasks.vocabulary import FEDERATED
from common.text import count
from deploy.federation.runs import Origin
from deploy.pages import figures as plots
from deploy.pages import view
from deploy.pages.budget import budget
from deploy.pages.figures import MEDIAN_RATE
from deploy.pages.statement import describe_parent, statement_of
from deploy.pages.view import (
    RunRecord,
    Section,
    Table,
    client_values,
    curve,
    figure,
    figure_of,
    format_value,
    headlines,
    labels,
    section,
    table,
)
from deploy.tasks.registry import DEPLOY_TASKS
from server.record.events import RoundEvent

DATA, CATALOGUE = "DATA", "CATALOGUE"
"""Placeholders for data or a vocabulary that were read: a run stores no paths."""

_BLANKS = {
    DATA: "DATA by the path of your data, and add --test, --catalogue or --policy if they were used",
    CATALOGUE: "CATALOGUE by the vocabulary file",
}

_OPTIONS = ("method", "task", "rounds", "seed")
_NOT_SETTINGS = {*_OPTIONS, "run-id", "resume", "catalogue", "federation.stop"}
_MADE = "demo"


def command(history: RunRecord) -> str:
    """Return an equivalent of the original command; it sets what differs from the defaults."""
    config, origin = history.config, _origin(history)
    words = ["fedloom", origin.command]
    for key in _OPTIONS:
        words += [f"--{key}", str(config[key])] if key in config else []
    words += _source(history, origin)
    words += ["--clients", str(origin.clients)] if origin.clients else []
    words += ["--partition", origin.scheme] if origin.scheme else []
    noisy = config.get("privacy.unit") == "client" and "privacy.epsilon" in config
    words += ["--epsilon", f"{config['privacy.epsilon']:g}"] if noisy else []
    words += _patience(config, origin)
    fewest = 1 if origin.command == "simulate" else origin.clients
    implied = {**_defaults(config), "federation.min-clients": fewest}
    implied |= {"federation.wait": 1.0} if origin.command == "simulate" else {}
    implied |= {"privacy.unit": "client", "privacy.epsilon": config["privacy.epsilon"]} if noisy else {}
    for key, value in config.items():
        if key not in _NOT_SETTINGS and implied.get(key) != value and not is_ignored(key, value):
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _patience(config: dict[str, Any], origin: Origin) -> list[str]:
    """Return early stopping where it differs from the command's default; `fedloom up` has one of its own."""
    stop = config.get("federation.stop", 0)
    has_default = origin.command == "up" and config.get("privacy.unit", "none") == "none" and config.get("rounds") != 1
    return ["--patience", str(stop)] if stop or (has_default and config.get("method") not in PLANNERS) else []


def lacks(history: RunRecord) -> str:
    """Return the placeholders to replace in the command; empty if there are none."""
    source = _source(history, _origin(history))
    return _BLANKS[source[1]] if source and source[1] in _BLANKS else ""


def _source(history: RunRecord, origin: Origin) -> list[str]:
    """Return the option of the data or, for data of joining clients, of the vocabulary."""
    found = ["--catalogue", FEDERATED] if history.config.get("catalogue") == FEDERATED else []
    if origin.command in ("serve", "submit"):
        return found or ([] if _has_demo_vocabulary(history) else ["--catalogue", CATALOGUE])
    return [] if origin.data == _MADE else ["--data", origin.data or DATA, *found]


def _has_demo_vocabulary(history: RunRecord) -> bool:
    return bool(history.config.get("catalogue", _MADE) == _MADE)


def _origin(history: RunRecord) -> Origin:
    """Return the stored origin; without it, the likely one by the configuration."""
    if history.origin:
        return history.origin
    config = history.config
    data = _MADE if _has_demo_vocabulary(history) else ""
    fewest = config.get("federation.min-clients", 0)
    if (fewest, config.get("federation.wait")) == (1, 1.0):
        return Origin("simulate", data, 0)
    return Origin("up", data, len(history.result.clients) if history.result else fewest)


def _defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of runs with that method, task, model and privacy unit."""
    chosen = ("model", "privacy.unit", "federation.stop", "planner.inner")
    try:
        defaults = flatten(parse({key: config[key] for key in ("method", "task", *chosen) if key in config}))
    except ConfigError:
        return {}  # a run of another release: every setting is named
    method = str(config.get("method"))
    inner = {chosen[-1]: PLANNERS[method].options().inner} if method in PLANNERS else {}
    return {**defaults, "model": RunConfig().model, "privacy.unit": RunConfig().privacy.unit, **inner}


HERE = Path(__file__).parent
MAX_CLIENTS = 200  # in a table of one row each
_QUANTITIES: tuple[tuple[str, str, Callable[[RoundEvent], float]], ...] = (
    ("Seconds", "From sending the model to its update.", lambda r: r.seconds),
    ("Clients answered, %", "Of the round's cohort.", lambda r: 100 * r.answered / max(r.asked, 1)),
    ("To the clients, MB", "Content sent, over all clients.", lambda r: r.bytes_down / 1e6),
    ("From the clients, MB", "Content received, over all clients.", lambda r: r.bytes_up / 1e6),
)


def page(runs: Sequence[Path]) -> str:
    """Return the whole document."""
    histories = [view.read(path) for path in runs]
    single = histories[0] if len(histories) == 1 else None
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True)
    return environment.get_template("report.html.jinja").render(
        css=(HERE / "report.css").read_text("utf-8"),
        title=single.title if single else f"{len(histories)} runs compared",
        histories=histories,
        labels=labels(histories),
        single=single,
        noisy=any(history.noisy for history in histories),
        cards=_cards(single) if single else [],
        comparison=[] if single else view.compare_runs(histories),
        sections=[section for section in _sections(histories) if section],
        statements=[
            (label, *statement_of(history.result))
            for label, history in zip(labels(histories), histories, strict=True)
            if history.result
        ],
        tasks=len({history.task for history in histories}),
        measured=view.measured_by(single.result) if single and single.result else "",
        settings=_settings(histories),
        reproduction=[_again(history) for history in histories],
        view=view,
        day=lambda seconds: f"{datetime.fromtimestamp(seconds):%-d %B %Y, %H:%M}",
    )


def _cards(history: RunRecord) -> list[dict[str, Any]]:
    best = history.result.best if history.result else None
    of_best = (best.test or best.metrics) if best else {}  # the test of a delivered round, as in the verdict
    which = "the best on validation data" if history.validated else "the best"
    objective = view.objective_of(history.task)
    which += f" by {view.measure(objective).label}" if objective else ""
    cards: list[dict[str, Any]] = []
    for m in view.folded(view.brief(history.final, history.task), objective):
        value = format_value(m, history.final[m.key])
        top = format_value(m, of_best[m.key]) if m.key in of_best else value
        note = f"{top} in round {best.round}, {which}" if best and top != value else ""
        cards.append({"metric": m, "value": value, "best": note})
    return cards


def _sections(histories: Sequence[RunRecord]) -> list[Section]:
    """Return the sections in order; sections of tasks replace figures of the metrics that they show."""
    tasks = [task for task in dict.fromkeys(history.task for history in histories) if task in DEPLOY_TASKS]
    of_tasks: list[Section] = []
    for task in tasks:
        with naming_packages(DEPLOY_TASKS.packages(task)):
            of_tasks += DEPLOY_TASKS[task].sections(histories)
    shown = {metric for section in of_tasks for metric in section.get("metrics", ())}
    return [
        *(_learning(histories, shown), budget(histories), _lists(histories)),
        *(*of_tasks, clusters(histories), _clients(histories, shown), _step(histories), _rounds(histories)),
    ]


def _learning(histories: Sequence[RunRecord], shown: Set[str]) -> Section:
    keys = {key for history in histories for r in history.rounds for key in r.metrics}
    has_loss = any(history.reports_error for history in histories)
    figures = []
    for m in headlines(keys - shown):
        caption = "Solid: evaluation. Dashed: training." if m.key == "loss" and has_loss else m.meaning
        figures.append(figure_of(m, plots.metric_curves(histories, m), caption))
    objectives = dict.fromkeys(view.objective_of(history.task) for history in histories)
    by = " and ".join(view.measure(key).label for key in objectives if key)
    note = f"Global model after each round; a dot marks the best round by {by}."
    if all(sum(bool(r.metrics) for r in history.rounds) < 2 for history in histories):
        note = "Global model after the only evaluated round."
    elif any(history.tested for history in histories):
        note += " On validation data; the last round is measured on test data and is the result."
    elif any(history.validated for history in histories):
        note += " On validation data; the result is measured on test data."
    return section("Learning", note, figures)


def _lists(histories: Sequence[RunRecord]) -> Section:
    cuts = sorted({n for history in histories for n in curve(history.final)})
    if len(cuts) < 3:
        return {}
    caption = "Share of held-out items among the first N suggestions."
    rates = figure("Hit rate at N", "higher", plots.hit_rates(histories), caption)
    rows = []
    for n in cuts:
        shares = [curve(history.final).get(n, math.nan) for history in histories]
        rows.append([f"the first {n}", *("–" if math.isnan(share) else f"{100 * share:.1f} %" for share in shares)])
    header = ["Held-out items found among", *labels(histories)]
    lists = section("Length of lists", "Final model, for lists of different lengths.", [rates])
    return lists | {"aside": table("", header, rows)}


def clusters(histories: Sequence[RunRecord]) -> Section:
    """Return the section: a map of assignments, how they changed, and the members of each cluster."""
    grouped = [history for history in histories if history.clusters]
    of_run = "" if len(histories) == 1 else " of {}"
    figures = [figure(f"Assignments{of_run.format(h.run)}", "", plots.assignments(h), _moves(h)) for h in grouped]
    note = "Each row is a client, each colour a cluster; clients of one final cluster stand together."
    return section("Clusters", note, figures, _members(grouped[0]) if len(histories) == 1 and grouped else None)


def _moves(history: RunRecord) -> str:
    """Return the number of changes of cluster, and the round of the last one, as a sentence."""
    moves = [b[0] for stays in history.clusters.values() for a, b in pairwise(stays) if a[1] != b[1]]
    if not moves:
        return "No client changed its cluster."
    times = "once" if len(moves) == 1 else f"{len(moves)} times"
    return f"Clients changed their cluster {times}, for the last time in round {max(moves)}."


def _members(history: RunRecord) -> Table:
    """Return a table with one row a cluster: its members after the last round, and their mean metrics."""
    last = {client: stays[-1][1] for client, stays in history.clusters.items()}
    clients = history.result.clients if history.result else {}
    shown = headlines({key for client in clients.values() for key in client.metrics} - {"loss"})
    rows: list[list[str]] = []
    for cluster in sorted(set(last.values())):
        members = sorted((client for client, j in last.items() if j == cluster), key=_natural)
        metrics = [clients[name].metrics for name in members if name in clients]
        values = [[one[m.key] for one in metrics if m.key in one] for m in shown]
        means = (fmean(each) if each else None for each in values)
        names = (Markup('<span class="name">{}</span>').format(name) for name in members)  # without breaks inside
        rows.append([str(cluster), str(len(members)), *map(format_value, shown, means), Markup(", ").join(names)])
    header = ["Cluster", "Clients", *(m.short for m in shown), "Members"]
    return table(f"{count(len(rows), 'cluster')} after the last round", header, rows, "words")


def _natural(name: str) -> tuple[str, int, str]:
    """Return a key that sorts `client-9` before `client-10`."""
    stem, number = view.split_number(name)
    return stem, int(number or 0), name


def _clients(histories: Sequence[RunRecord], shown: Set[str]) -> Section:
    keys = {key for h in histories if h.result for client in h.result.clients.values() for key in client.metrics}
    figures = []
    for m in [*headlines(keys - {"loss"} - shown), EXAMPLES]:
        if any(client_values(history, m) for history in histories):
            figures.append(figure_of(m, plots.client_spread(histories, m), m.meaning))
    note = "Final model on each client's own data; a mean can conceal clients without improvement. Dashed: median."
    if len(histories) == 1 and histories[0].result and (measured := view.measured_by(histories[0].result)):
        note += f" Measured {measured}."
    return section("Clients", note, figures, _client_table(histories[0]) if len(histories) == 1 else None)


def _client_table(history: RunRecord) -> dict[str, Any] | None:
    clients = history.result.clients if history.result else {}
    if not clients or len(clients) > MAX_CLIENTS:
        return None
    measures = view.in_order({key for client in clients.values() for key in client.metrics})
    header, rows = ["Client", "Examples", *(m.short for m in measures)], []
    for name, client in clients.items():
        rows.append([name, f"{client.examples:,}", *(format_value(m, client.metrics.get(m.key)) for m in measures)])
    if history.hides_sizes:
        header, rows = header[:1] + header[2:], [row[:1] + row[2:] for row in rows]
    return table(f"All {len(clients)} clients", header, rows)


def _step(histories: Sequence[RunRecord]) -> Section:
    if not any(MEDIAN_RATE in r.server for history in histories for r in history.rounds):
        return {}
    caption = "Curve: median parameter. Band: 5th to 95th percentile of all parameters."
    rates = figure("Step size", "", plots.step_rates(histories), caption)
    note = "Step of the server per unit of momentum, η/(√v + τ); the band is wide if updates differ in size."
    return section("Server step", note, [rates])


def _rounds(histories: Sequence[RunRecord]) -> Section:
    if not any(history.rounds for history in histories):
        return {}
    figures = [
        figure(title, "", plots.per_round(histories, f"{title} per round", value), caption)
        for title, caption, value in _QUANTITIES
    ]
    labeled = zip(labels(histories), histories, strict=True)
    rows = [[*absence, label] for label, history in labeled for absence in view.absences(history.rounds)]
    header = ["Client", "Reason why its reply did not count in full", "Rounds", "Run"]
    gone = table(count(len(rows), "absence"), header, rows, "words") if rows else None
    return section("Rounds", "Time and traffic of each round.", figures, gone)


def _settings(histories: Sequence[RunRecord]) -> list[dict[str, Any]]:
    keys = sorted({key for history in histories for key in history.config}, key=lambda key: ("." in key, key))
    rows = [(key, [str(history.config.get(key, "–")) for history in histories]) for key in keys]
    return [{"key": key, "cells": cells, "differs": len(set(cells)) > 1} for key, cells in rows]


def _again(history: RunRecord) -> dict[str, Any]:
    facts = [("run", history.run), ("seed", history.config.get("seed", "?"))]
    if history.result:
        parent = history.result.parent
        facts += [("started from", describe_parent(parent))] if parent else []
        facts += [("device", history.result.device)] if history.result.device else []
        facts += [("model sha256", history.result.model_sha256)]
        facts += [("versions", " · ".join(f"{name} {version}" for name, version in history.result.versions.items()))]
    return {"command": command(history), "lacks": lacks(history), "facts": facts}


def render(runs: list[Path], out: Path) -> Path:
    """Write a self-contained page on one run or a comparison of several; return its path.

    Raises:
        ConfigError: A folder is not a run.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(runs), "utf-8")
    return out
