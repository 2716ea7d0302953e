"""Contexts of the app: the state and configuration of each run, kept across connections."""

from collections import OrderedDict

from flwr.app import Context, RecordDict

from client.node.fleet import Fleet

Config = dict[str, bool | float | int | str]
RUNS_REMEMBERED = 16


class RunContexts:
    """State and configuration of the last `RUNS_REMEMBERED` runs.

    Args:
        node_config: Node configuration in every Context.
    """

    def __init__(self, node_config: Config) -> None:
        self._node_config = node_config
        self._runs: OrderedDict[int, tuple[RecordDict, Config]] = OrderedDict()

    def build(self, fleet: Fleet, run_id: int) -> Context:
        """Return the Context of a run; the configuration of a new run is fetched."""
        if run_id not in self._runs:
            self._runs[run_id] = RecordDict(), fleet.fetch_run_config(run_id)
            while len(self._runs) > RUNS_REMEMBERED:
                self._runs.popitem(last=False)
        state, run_config = self._runs[run_id]
        return Context(
            run_id=run_id,
            node_id=fleet.node_id,
            node_config=dict(self._node_config),
            state=state,
            run_config=dict(run_config),
        )

    def store(self, context: Context) -> None:
        """Store the state that the app has left in a Context."""
        self._runs[context.run_id] = context.state, self._runs[context.run_id][1]
