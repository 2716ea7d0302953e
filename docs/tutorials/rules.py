# %% [markdown]
# # Recommend automations for smart homes
#
# Two thousand generated homes solve a model of IF-THEN rules from sums of their statistics. Each home is a client with its own
# private graph of devices and rules. Nothing leaves this process.

# %%
import fedloom

run = fedloom.simulate("rules", seed=0)
print(run)
print(run.verdict.text)

# %% [markdown]
# ## How good is it?
#
# `hr20` is the share of held-out rules among the 20 best recommendations, averaged over homes. `fedrule` trains the network of
# FedRule's paper in rounds instead; here on fewer homes.

# %%
few = {"data": "demo:0-200", "seed": 0}
solved, trained = fedloom.simulate("rules", **few), fedloom.simulate("rules", method="fedrule", rounds=20, **few)
for row in fedloom.compare([solved, trained]):
    print(f"{row['method']:8} auc {row['auc']:.3f}  hr20 {row['hr20']:.3f}")

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
# With `epsilon`, two helpers add noise to one masked sum. The statement names what the guarantee does not cover.

# %%
private = fedloom.simulate("rules", epsilon=10, **few)
print(private.privacy.mechanism, private.privacy.helpers)
print(f"ε = {private.privacy.epsilon}, δ = {private.privacy.delta}, per {private.privacy.unit}")
print(*private.privacy.uncovered, sep="\n")
