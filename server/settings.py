"""Settings from the server's environment: the folder of runs."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class ServerSettings(BaseSettings):
    """Values of `FEDLOOM_*` variables."""

    model_config = SettingsConfigDict(env_prefix="FEDLOOM_", frozen=True, extra="ignore")

    runs: Path = Path("runs")
    """Folder with one folder per run."""
