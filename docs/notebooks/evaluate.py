# %% [markdown]
# # Compare methods on one data set
#
# Three methods, three seeds each, on generated homes. Replace `DATA` by the path of a table of your own.

# %%
import statistics

import matplotlib.pyplot as plt

import fedloom

DATA = "demo:0-60"

# %% [markdown]
# ## Train
#
# Seeds decide the split, the initial model and the negative samples. All methods see the same ones.

# %%
METHODS = ("fedrule", "fedavg", "local")
runs = {
    method: [fedloom.simulate("rules", data=DATA, method=method, rounds=8, seed=seed) for seed in range(3)]
    for method in METHODS
}

# %% [markdown]
# ## Compare
#
# The difference to FedAvg is paired by seed. A difference below two standard errors is no difference.

# %%
for method, trained in runs.items():
    values = [run.metrics["hr20"] for run in trained]
    pairs = [a - b.metrics["hr20"] for a, b in zip(values, runs["fedavg"], strict=True)]
    error = statistics.stdev(pairs) / len(pairs) ** 0.5
    print(f"{method:8} hr20 {statistics.mean(values):.3f}, against fedavg {statistics.mean(pairs):+.3f} ± {error:.3f}")

# %% [markdown]
# ## Plot

# %%
for method, trained in runs.items():
    rounds = trained[0].rounds
    plt.plot([row["round"] for row in rounds], [row["hr20"] for row in rounds], label=method)
plt.xlabel("round")
plt.ylabel("HR@20, seed 0")
plt.legend()
plt.show()
