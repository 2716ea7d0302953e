# %% [markdown]
# # Recommend the next item of a session
#
# Visitors of a generated shop train a session model together with FedGA. Each visitor is a client.

# %%
import fedloom

run = fedloom.simulate("sessions", data="demo:0-80", rounds=10, seed=0)
print(run)

# %% [markdown]
# ## Compare with a simpler method
#
# FedAvg averages the updates and takes no adaptive step on the server.

# %%
plain = fedloom.simulate("sessions", data="demo:0-80", method="fedavg", rounds=10, seed=0)
for row in fedloom.compare([run, plain]):
    print(f"{row['method']:8} hr20 {row['hr20']:.3f}  mrr20 {row['mrr20']:.3f}")

# %% [markdown]
# ## Continue a session

# %%
for one in run.recommend(data="demo", session="sea waders, telescopic line spool", top=5):
    print(f"{one.score:.2f}  {one.what}")
