# %% [markdown]
# # From a DataFrame to a served model
#
# A table of ratings trains a model with differential privacy, and an app asks it over HTTP. Each reader is a client.
# Two helpers add noise to the sum of masked reports. Replace `table` by a DataFrame of your own, of polars or pandas.

# %%
import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import polars as pl

import fedloom

# %% [markdown]
# ## The table
#
# Four hundred readers rate 10 of 24 books each. Every reader likes one genre of four better than the others.

# %%
rng = np.random.default_rng(0)
books = [f"{genre} {number}" for genre in ("Crime", "Poems", "Travel", "Essays") for number in range(1, 7)]
quality, taste = rng.normal(0, 0.4, 24), rng.integers(0, 4, 400)
rows = [(reader, book) for reader in range(400) for book in rng.choice(24, 10, replace=False)]
stars = [3 + quality[book] + (book // 6 == taste[reader]) + rng.normal(0, 0.5) for reader, book in rows]
table = pl.DataFrame(
    {
        "reader": [f"reader-{reader:03}" for reader, _ in rows],
        "book": [books[book] for _, book in rows],
        "stars": np.clip(np.round(stars), 1, 5),
    }
)
print(table.head(3))

# %% [markdown]
# ## Check
#
# The report says what training would read, before anything trains.

# %%
columns = {"user": "reader", "item": "book", "rating": "stars"}
report = fedloom.check(table, task="ratings", columns=columns)
print(report.reading.rows, "rows of", report.units, "readers")

# %% [markdown]
# ## Train
#
# `epsilon` bounds what the reports of the whole run reveal about one reader.

# %%
federation = fedloom.Federation("ratings", epsilon=8, seed=0).fit(table, by="reader", columns=columns)
run = federation.run
print(f"error {run.metrics['rmse']:.3f}, of each reader's own mean {run.metrics['rmse_local_mean']:.3f}")
print(f"spent ε {run.privacy.epsilon_spent_max:.2f} of {run.privacy.epsilon:g}, δ {run.privacy.delta}")

# %% [markdown]
# ## Predict

# %%
for one in federation.predict(table, user="reader-007", top=3):
    print(f"{one.score:.2f}  {one.what}")

# %% [markdown]
# ## Serve
#
# The ONNX file holds the model and its privacy statement, and no ratings. `fedloom serve-model` answers on this machine.

# %%
Path("model.onnx").unlink(missing_ok=True)  # of an earlier pass
run.export_onnx("model.onnx")
command = [Path(sys.executable).with_name("fedloom"), "serve-model", "model.onnx", "--port", "0"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
address = next(line.split()[1] for line in server.stdout if line.startswith("listen"))

# %% [markdown]
# ## Ask
#
# A person who took no part sends three ratings. The server does not store them.

# %%
token = Path(".fedloom/serve-model.token").read_text().strip()
body = {"ratings": {"Poems 1": 5, "Poems 2": 5, "Crime 1": 2}, "top": 3}
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
with urlopen(Request(address, json.dumps(body).encode(), headers)) as answer:
    for one in json.load(answer)["items"]:
        print(f"{one['score']:.2f}  {one['what']}")
server.terminate()
