# %% [markdown]
# # Forecast the next day of a sensor
#
# Generated road sensors train a forecaster with FedSTL. Each sensor infers a logical property of its past
# and keeps its own head.

# %%
import fedloom

run = fedloom.simulate("traffic", method="fedstl", data="demo:0-6", rounds=3, seed=0)
print(run)

# %% [markdown]
# ## Compare with the weekly profile
#
# `profile_mse` is the error of the mean reading at this hour of the week, which needs no federation.

# %%
print(f"model {run.metrics['mse']:.3f}, weekly profile {run.metrics['profile_mse']:.3f}")

# %% [markdown]
# ## Forecast
#
# The interval covers 80 % of the sensor's own past errors. `low` and `high` hold for the whole day on nine days of ten;
# `corrected` goes nine tenths of the way to them.

# %%
for row in run.forecast(data="demo", site="site-00003", horizon=6):
    print({key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()})

# %% [markdown]
# ## Sensors that break
#
# In `demo:breaking` a third of the sensors has lost most of its past, and another third reads too much now and then.
# Histories are repaired: readings that a sensor's property forbids are replaced by its profile.
# Clients measure a model of their own data alone for the verdict.
# `teacher_mse` is the error after correction by the property.

# %%
settings = {"federation.compare-alone": True}
run = fedloom.simulate("traffic", method="fedstl", data="demo:breaking:0-6", rounds=2, seed=0, settings=settings)
print(f"model {run.metrics['mse']:.2f}, corrected {run.metrics['teacher_mse']:.2f}")
print(run.verdict.text if run.verdict else "no verdict")
