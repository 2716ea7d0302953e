"""Federation as an object with `fit` and `predict`, for notebooks."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError, ConnectError
from fedloom.arguments import Data
from fedloom.runs import Row, Run
from fedloom.training import simulate

if TYPE_CHECKING:
    from fedloom.queries import Recommendation


class Federation:
    """Federation that trains in this process on one table whose rows belong to several clients.

    Args:
        task: Name of the task.
        method: Name of the method; default: the task's own.
        options: Options of `fedloom.simulate`, such as `rounds`, `seed`, `epsilon` and `settings`.
    """

    def __init__(self, task: str, method: str = "", **options: Any) -> None:
        self.task, self.method, self.options = task, method, options
        self._run: Run | None = None
        self._columns: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"<Federation {self.task}: {self._run or 'not fitted'}>"

    @property
    def run(self) -> Run:
        """The run of the last `fit`.

        Raises:
            ConfigError: There is none.
        """
        if self._run is None:
            raise ConfigError("the federation is not fitted; call fit(data) first")
        return self._run

    def fit(self, data: Data = "demo", *, by: str = "", columns: Mapping[str, str] | None = None) -> "Federation":
        """Train; return the federation itself.

        Args:
            data: Data file or folder, or a table of pandas, polars or Arrow.
            by: Column whose values are the clients; default: one client per unit of the task, such as a user.
            columns: Name of a column for fedloom -> its title in the table.

        Raises:
            DataError: The data cannot be read.
            RunError: The run failed.
        """
        self._columns = columns or None
        options = {**self.options, "columns": self._columns, "partition": by}
        self._run = simulate(self.task, data=data, method=self.method, **options)
        return self

    def predict(self, data: Data = "demo", **query: Any) -> "list[Recommendation] | list[Row]":
        """Return the forecast of a sensor in task `traffic`, else recommendations; see `Run.forecast` and `Run.recommend`.

        Args:
            data: Data file or folder, or a table, with the columns of `fit`.
            query: Options such as `user`, `top`, `site` or `horizon`.
        """
        words = {"columns": self._columns, **query}
        if self.task == "traffic":
            return self.run.forecast(data=data, **words)
        return self.run.recommend(data=data, **words)

    def push_to_hub(self, repo: str, *, token: str | None = None, private: bool = True) -> str:
        """Upload the ONNX model with its card to the Hugging Face Hub; return its address.

        The model holds no client's data and no personal parameters.

        Args:
            repo: `OWNER/NAME` of the repository, which is created if it does not exist.
            token: Access token; default: the one of `hf auth login`.
            private: True creates a private repository.

        Raises:
            ConfigError: huggingface_hub is not installed, or the model cannot be exported.
            ConnectError: The Hub cannot be reached, or refuses the upload.
        """
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise ConfigError("the Hub needs huggingface_hub; install it with: pip install huggingface_hub") from None
        from deploy.pages.view import first_line

        api = HfApi(token=token)
        with TemporaryDirectory() as folder:
            self.run.export_onnx(Path(folder) / "model.onnx")
            (Path(folder) / "model-card.md").rename(Path(folder) / "README.md")
            try:
                address = str(api.create_repo(repo, private=private, exist_ok=True))
                api.upload_folder(repo_id=repo, folder_path=folder, commit_message=f"fedloom run {self.run.id}")
            except Exception as error:  # of huggingface_hub and its client of HTTP: any class
                raise ConnectError(f"{repo} was not uploaded to {api.endpoint}: {first_line(str(error))}") from error
        return address
