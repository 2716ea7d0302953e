# %% [markdown]
# # Try a method of your own
#
# A method is a class of options and a server step. Clients train as in FedAvg unless you bring a trainer too.
# This one takes the median of the updates, coordinate by coordinate.

# %%
from typing import ClassVar

import numpy as np

import fedloom
from common.api import MethodOptions, MethodSpec, sub
from server.api import Method


class Median(MethodOptions):
    """θ ← θ − median of Δ_k, coordinate by coordinate."""

    name: ClassVar[str] = "median"


class MedianStep(Method):
    """Server side of the median."""

    def __init__(self, options):
        pass

    def update(self, at, state, model, total):
        """Take one server step."""
        step = {name: np.median([reply.update[name] for reply in total.replies], axis=0) for name in model}
        return sub(model, {name: array.astype(model[name].dtype) for name, array in step.items()}), state


fedloom.add_method(MethodSpec(Median, "Median of the updates"), MedianStep)

# %% [markdown]
# ## Train it next to FedAvg

# %%
for method in ("median", "fedavg"):
    run = fedloom.simulate("rules", data="demo:0-120", method=method, rounds=15, seed=0)
    print(f"{method:8} train loss {run.rounds[-1]['loss']:.3f}  auc {run.metrics['auc']:.3f}")
