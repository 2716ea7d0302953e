"""Visitors and their sessions: columns, table, split by (seed, name), graphs (§2.5–2.6).

Importing it must not import torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import numpy as np

from client.data.dataset import Dataset, floor_share, own_rng
from client.data.tables.files import write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.arrays import Array, Arrays, Ints
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks, Items

USER, ITEM, ITEMS, TIME, SESSION, SPLIT = ("user", "item", "items", "timestamp", "session", "split")

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("userid", "visitor", "visitorid", "userpseudoid"), required=False, blank="missing"),
        Column(ITEM, "text", ("itemid", "product"), required=False, blank="missing"),
        Column(ITEMS, "text", ("itemidlist",), required=False, blank="missing", many=True),
        Column(
            TIME,
            "time",
            ("time", "datetime", "date", "ts", "eventtimestamp", "date+hour(yyyymmddhh)"),
            required=False,
            blank="missing",
        ),
        Column(SESSION, "text", ("sessionid",), required=False, blank="missing"),
        Column(SPLIT, "text", required=False, blank="missing"),
    ),
    layouts=((ITEM, SESSION), (ITEM, USER, TIME), (ITEMS, USER), (ITEMS, SESSION)),
    unit=USER,
)
"""A row with a user and nothing else declares a user, who may have no clicks."""


@dataclass(frozen=True)
class Case:
    """A test example as published sets give it: the clicks so far and the click that followed."""

    prefix: Clicks
    target: int


@dataclass(frozen=True)
class Visitor:
    """One user, device or group of sessions: what becomes a client.

    Args:
        name: Private.
        sessions: In time order where times are known, each at least 2 clicks long.
        test: Test examples where the source brings its own; otherwise the split cuts some sessions off.
    """

    name: str
    sessions: tuple[Clicks, ...]
    test: tuple[Case, ...] = ()


Visits = Dataset[Items, Visitor]


def as_clicks(items: list[int]) -> Clicks:
    """Return a session from a list of indices."""
    clicks: Ints = np.array(items, np.int64)
    return clicks


@dataclass(frozen=True)
class SplitVisitor:
    """A visitor's sessions to train on, in their order, and the cases it holds out."""

    visitor: Visitor
    train: tuple[Clicks, ...]
    validation: tuple[Case, ...]
    test: tuple[Case, ...]


def split_visitor(visitor: Visitor, options: SessionsOptions, seed: int) -> SplitVisitor:
    """Hold out whole sessions at random: the first share for test, the next, of the rest, for validation.

    A visitor that brings test cases holds out no session for test. Shares are rounded down, so one session is always
    left for training; the test sessions do not depend on the validation share.
    """
    order = own_rng(seed, visitor.name).permutation(len(visitor.sessions))
    test = 0 if visitor.test else floor_share(options.test_share, len(order))
    held = test + floor_share(options.validation_share, len(order) - test)
    return SplitVisitor(
        visitor,
        train=_chosen(visitor, order[held:]),
        validation=_all_cases(_chosen(visitor, order[test:held])),
        test=visitor.test or _all_cases(_chosen(visitor, order[:test])),
    )


def cases_of(session: Clicks) -> tuple[Case, ...]:
    """Return the n − 1 examples (clicks so far, next click) of a session of n clicks (§2.5)."""
    return tuple(Case(session[:k], int(session[k])) for k in range(1, len(session)))


def _chosen(visitor: Visitor, places: np.ndarray) -> tuple[Clicks, ...]:
    return tuple(visitor.sessions[k] for k in sorted(places.tolist()))


def _all_cases(sessions: Sequence[Clicks]) -> tuple[Case, ...]:
    return tuple(case for session in sessions for case in cases_of(session))


def write_visitors(path: Path, dataset: Visits) -> None:
    """Write visitors as CSV, readable by the owner only; `read_visitors` with the vocabulary inverts it.

    Times are running numbers. The column `split` is `train`, or `case` for a test case, which is a session of its own
    whose last click is asked for. A visitor with neither is a row with a user and nothing else.
    """
    rows = (row for visitor in dataset.units for row in _rows(visitor, dataset.vocabulary))
    write_private_csv(path, (USER, ITEM, TIME, SESSION, SPLIT), rows)


def _rows(visitor: Visitor, items: Items) -> Iterator[tuple[str | int, ...]]:
    clock = count()
    cases = (("case", np.append(case.prefix, case.target)) for case in visitor.test)
    for number, (split, clicks) in enumerate(
        chain((("train", session) for session in visitor.sessions), cases), start=1
    ):
        for item in clicks.tolist():
            yield visitor.name, items.items[item], next(clock), number, split
    if not (visitor.sessions or visitor.test):
        yield visitor.name, "", "", "", ""


GRAPH = ("nodes", "edges", "w_in", "w_out", "clicks", "owner", "last")
"""Inputs of the networks, in their order."""


def graph_arrays(prefixes: Sequence[Clicks], max_length: int) -> Arrays:
    """Return the arrays that `GRAPH` names; of a longer prefix, the last `max_length` clicks count."""
    shortened = [prefix[-max_length:] for prefix in prefixes]
    items, lengths = _padded(shortened), np.array([len(prefix) for prefix in shortened], np.int64)
    nodes, alias = _distinct(items)
    edges = _edges(alias, items > 0, len(nodes))
    arriving, leaving = (np.bincount(ends, minlength=len(nodes))[ends] for ends in (edges[1], edges[0]))
    return {
        "nodes": nodes,
        "edges": edges,
        "w_in": (1 / arriving).astype(np.float32),
        "w_out": (1 / leaving).astype(np.float32),
        "clicks": alias[items > 0],
        "owner": np.repeat(np.arange(1, len(shortened) + 1), lengths),
        "last": alias[np.arange(len(shortened)), np.maximum(lengths - 1, 0)],
    }


def _padded(prefixes: Sequence[Clicks]) -> Array:
    """Return rows of the embedding, E × L, zeros after the last click; L is at least 1."""
    lengths = np.array([len(prefix) for prefix in prefixes], np.int64)
    clicks = np.zeros((len(prefixes), lengths.max(initial=1)), np.int64)
    if len(prefixes):
        clicks[np.arange(clicks.shape[1]) < lengths[:, None]] = np.concatenate(prefixes) + 1
    return clicks


def _distinct(clicks: Array) -> tuple[Array, Array]:
    """Return 0 and each row's distinct items, ascending, and each click's place among them, E × L."""
    order = np.argsort(clicks, axis=1, kind="stable")
    ascending = np.take_along_axis(clicks, order, axis=1)
    new = (ascending > 0) & (np.diff(ascending, axis=1, prepend=0) > 0)
    node = np.cumsum(new).reshape(new.shape)
    alias = np.zeros_like(clicks)
    np.put_along_axis(alias, order, node, axis=1)
    return np.concatenate([np.zeros(1, np.int64), ascending[new]]), np.where(clicks > 0, alias, 0)


def _edges(alias: Array, mask: Array, nodes: int) -> Array:
    """Return the distinct pairs of consecutively clicked nodes, 2 × K, ascending."""
    follows = mask[:, 1:]
    pairs = np.unique(alias[:, :-1][follows] * nodes + alias[:, 1:][follows])
    return np.stack(np.divmod(pairs, nodes))
