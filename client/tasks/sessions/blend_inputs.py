"""Inputs of the default model's blend: history features, and the sessions that train its weights."""

from collections.abc import Iterator

import torch

from client.data.partition import own_rng
from client.stacked_tensors import Tensors
from client.tasks.sessions.baseline import FeatureRows, ItemFeatures, VisitHistory, history_features
from client.tasks.sessions.data.split import SplitVisitor, cases_of
from client.tasks.sessions.ranking import held_out
from common.tasks.sessions.counts import SharedRules


def features_of_split(split: SplitVisitor, part: str, shared: SharedRules | None) -> Iterator[ItemFeatures]:
    """Yield the features of every case in a part of a visitor's sessions."""
    history = VisitHistory.of(split.train)
    if part != "train":
        for case in held_out(split, part):
            yield history_features(case.prefix, history, shared)
        return
    for session in split.train:
        before = history.without(session)
        for case in cases_of(session):
            yield history_features(case.prefix, before, shared)


def blend_flags(split: SplitVisitor, share: float, seed: int) -> list[bool]:
    """Return True for each example of a session for the blend weights; sessions are drawn by (seed, name)."""
    is_drawn = own_rng(seed, f"blend of {split.visitor.name}").random(len(split.train)) < share
    return [bool(keep) for keep, session in zip(is_drawn, split.train, strict=True) for _ in session[1:]]


def pad_features(rows: FeatureRows) -> Tensors:
    """Return the tensors `index` and `value` of the features, zero-padded."""
    index, value = rows.pad()
    return {"index": torch.from_numpy(index), "value": torch.from_numpy(value)}
