# %% [markdown]
# # Recommend automations for smart homes
#
# Four hundred generated homes train a model of IF-THEN rules together. Each home is a client with its own private graph of
# devices and rules. Nothing leaves this process.

# %%
import fedloom

run = fedloom.simulate("rules", rounds=20, seed=0)
print(run)

# %% [markdown]
# ## How good is it?
#
# `hr20` is the share of held-out rules among the 20 best recommendations, averaged over homes. `auc` compares
# held-out rules with random ones.

# %%
for row in run.rounds[::5]:
    print(f"round {row['round']:2}  train loss {row['loss']:.3f}  auc {row['auc']:.3f}  hr20 {row['hr20']:.3f}")

# %% [markdown]
# ## Ask for recommendations
#
# Only rules that the home's devices can execute are listed. The score orders them; it is no probability.

# %%
for one in run.recommend(data="demo", user="home-00003", top=5):
    print(f"{one.score:.2f}  {one.what}  ({one.why})")

# %% [markdown]
# ## Add noise
#
# With `epsilon`, every home clips and perturbs what it sends. The statement names what the guarantee does not cover.

# %%
private = fedloom.simulate("rules", method="fedavg", rounds=5, seed=0, epsilon=10)
print(private.privacy.mechanism)
print(f"ε = {private.privacy.epsilon}, δ = {private.privacy.delta}, per {private.privacy.unit}")
print(*private.privacy.uncovered, sep="\n")
