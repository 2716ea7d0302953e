# %% [markdown]
# # Recommend the next item of a session
#
# Visitors of a generated shop solve a session model from sums of item pairs. Each visitor is a client.

# %%
import fedloom

run = fedloom.simulate("sessions", data="demo:0-80", seed=0)
print(run)

# %% [markdown]
# ## Compare with a network
#
# FedGA trains a session graph network in rounds.

# %%
trained = fedloom.simulate("sessions", data="demo:0-80", method="fedga", rounds=10, seed=0)
for row in fedloom.compare([run, trained]):
    print(f"{row['method']:8} hr20 {row['hr20']:.3f}  mrr20 {row['mrr20']:.3f}")

# %% [markdown]
# ## Continue a session

# %%
for one in run.recommend(data="demo", session="sea waders, telescopic line spool", top=5):
    print(f"{one.score:.2f}  {one.what}")
