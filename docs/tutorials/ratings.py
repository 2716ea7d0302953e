# %% [markdown]
# # Predict ratings with privacy
#
# Every person is a client and sends one masked report, to whose sum two helpers add noise. Raw ratings and the names of rated
# items stay with them.

# %%
import fedloom

run = fedloom.simulate("ratings", data="demo", epsilon=10, seed=0)
print(run)
print(run.privacy.mechanism)

# %% [markdown]
# ## What the budget buys
#
# A smaller ε means more noise. `rmse_local_mean` is the error of each person's own mean, which costs no privacy.

# %%
for epsilon in (1, 10, 100):
    one = fedloom.simulate("ratings", data="demo", epsilon=epsilon, seed=0)
    print(f"ε = {epsilon:3}  rmse {one.metrics.get('rmse', float('nan')):.4f}")

# %% [markdown]
# ## Recommend

# %%
for one in run.recommend(data="demo", user="rater-00003", top=5):
    print(f"{one.score:.2f}  {one.what}")
