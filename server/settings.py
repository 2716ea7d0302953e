"""What the server's environment decides, and nothing else: where runs live."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class ServerSettings(BaseSettings):
    """`FEDLOOM_*` variables."""

    model_config = SettingsConfigDict(env_prefix="FEDLOOM_", frozen=True, extra="ignore")

    runs: Path = Path("runs")
    """Folder that holds a folder a run."""
