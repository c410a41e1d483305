"""Settings: read once at start, frozen, passed down."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Mode(StrEnum):
    """Sandbox has a simulated provider and control routes; live has neither."""

    SANDBOX = "sandbox"
    LIVE = "live"


@dataclass(frozen=True)
class Settings:
    """Everything that a start can choose; `docs/reference/settings.md` lists where each comes from."""

    mode: Mode
    database_url: str
    base_url: str
    data_dir: Path
    admin_token: str
    host: str = "127.0.0.1"
    port: int = 8000
    auth_port: int | None = None
    ispb: str = "99999999"
    bank_number: str = "999"
    bank_name: str = "Lastro Sandbox IP S.A."
    city: str = "SAO PAULO"
    provider: str | None = None
    valkey_url: str | None = None
    trusted_proxies: tuple[str, ...] = field(default=())
    login_failures_per_minute: int = 10
    login_calls_per_minute: int = 600
    lane_per_account: bool = False
    workers: bool = True

    @property
    def sandbox(self) -> bool:
        """Tell whether the simulated provider and its routes are on."""
        return self.mode is Mode.SANDBOX
