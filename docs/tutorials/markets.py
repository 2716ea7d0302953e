# %% [markdown]
# # Find products that go together, across markets
#
# Generated markets of different sizes solve a scorer from sums. Each keeps its own counts of pairs.

# %%
import fedloom

run = fedloom.simulate("markets", data="demo", seed=0)
print(run)

# %% [markdown]
# ## Look at single markets

# %%
for row in run.clients:
    print(f"{row['client']:12} {row['examples']:6} pairs  mrr20 {row['mrr20']:.3f}")

# %% [markdown]
# ## Recommend products that go with one

# %%
for one in run.recommend(data="demo", market="hills", item="Steel coffee grinder", top=5):
    print(f"{one.score:.2f}  {one.what}")
