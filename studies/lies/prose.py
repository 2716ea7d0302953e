"""Text of the page on lies; its numbers are filled in."""

INTRODUCTION = """# Lies

{made_by} {runs} runs took {minutes:.0f} minutes.

One of {clients} clients has a valid key and lies in every round, {rounds} rounds a run. The server and the clients are those of
`fedloom simulate`. A lie changes the liar's reply on its way to the server: the message is decoded, changed and encoded again.
Every registered method and planner runs on one task, `fedavg` on all five. Planners other than `fedsgd` have noise of ε = 8.

Quality is the mean of one metric over the honest clients' held-out data: {metrics}.
It is compared with the run of the same seed without the liar. The spread is the range of the quality of such runs over
{seeds} seeds. Runs with a liar have {lie_seeds}."""

LIES = """## The lies

{lies}

The reply of 1 GB has this size; the server weighs it before it decodes it. Between machines the SuperLink refuses messages
beyond 256 MB unread (`FEDLOOM_MOST_UPLOAD`, `tests/contracts/test_door_exchange.py`). Silence is waited for {grace:g} s beyond
the quorum's patience here, {wait:g} s between machines.
In one process names belong to the first who enrols. Between machines a name belongs to a key
(`tests/server/clients/test_node_directory.py`). CI has each lie as a test for every method and planner
(`tests/contracts/test_lies.py`, `test_lies_in_tasks.py`)."""

TABLE = """## Method by lie

Loss of quality in spreads, 0.0 where the model is as good or better. A cell with a number only: the run finished and the liar
was named. An empty cell was not run. `local` sends no update, so lies about it do not exist. Means of `pfedme` and `pfgnn` are
not per step, so a false number of steps has no effect on them. An owner may allow one step only, so the number can be true."""

EFFECTS = """## Adaptive and targeted liars

Liars of this section know the server's checks and act together. Runs are of real data and have {seeds} seeds. Quality is of
the honest clients' held-out data. It is compared with the same clients in the run of the same seed without liars.

{sources}

The network of sessions and ratings is that of the paper. The attacks:

{attacks}

All liars of a round see the honest updates of the other liars alone."""

NOT_REACHED = "These cost more than one spread and 3 %, or show the target in more than twice as many lists:"

EFFECT_TABLE = """Columns are shares of liars. A cell states the loss of quality, in % and in spreads over seeds.
It also states the liars that a round line names. A reply that is set aside does not count in its round. An empty cell was
not run. A bold loss is beyond one spread and 3 %."""

PILOT = """## A rule for strangers

`federation.robust=auto` was chosen by these runs alone. Their seeds are {seeds}, which no other run of this page has. 20 % lie.
Cells are losses of quality against the mean without liars.

`auto` is the geometric median where clients send an update alone, from ten replies on. Sessions decide that. On ratings,
traffic and markets the rules are level, and without liars the median costs nothing there. It is the mean where they also send
gradients, as in `fedrule`: control variates add up to 0 only by the mean. Closed forms, noise and masks have bounds of their
own, and the mean. Coordinate-wise rules lose what few clients know, without any liar."""
