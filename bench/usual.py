"""The baselines as child processes: uvicorn with uvloop and httptools, on the service's own server."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.children import ROOT, BenchError, Child, wait_until
from bench.service import Account, answers, free_port

PYTHON = ROOT / "bench" / ".venv" / "bin" / "python"
# Found by trying (bench/README.md): more connections only queue at the hot row, more workers fight for cores.
POOL_SIZE = {"orm": 8, "textual": 8}
WORKERS = {"orm": 1, "textual": 1}


def is_installed() -> bool:
    """Tell whether the baselines' own virtual environment is there."""
    return PYTHON.exists()


class Baseline:
    """One of the two baselines, running."""

    def __init__(
        self,
        name: str,
        database_url: str,
        accounts: Sequence[Account],
        *,
        pool_size: int | None = None,
        workers: int | None = None,
    ) -> None:
        if not is_installed():
            raise BenchError("The baselines are not installed: make bench/.venv/.done")
        self.name = name
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"lastro-{name}-"))
        keys = self.folder / "accounts.json"
        keys.write_text(json.dumps({account.api_key: account.account_id for account in accounts}))
        parts = urlsplit(database_url)
        host = parse_qs(parts.query)["host"][0]
        env = {
            "BASELINE_DATABASE_URL": f"postgresql+asyncpg://{parts.username}@/{parts.path.lstrip('/')}?host={host}",
            "BASELINE_ACCOUNTS": str(keys),
            "BASELINE_POOL_SIZE": str(pool_size or POOL_SIZE[name]),
        }
        command = [
            str(PYTHON), "-m", "uvicorn", f"bench.baselines.{name}:app", "--port", str(self.port),
            "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning",
            "--workers", str(workers or WORKERS[name]),
        ]  # fmt: skip
        self.child = Child(command, log=self.folder / "log", env=env)

    def wait_ready(self) -> None:
        """Wait until it answers."""

        def ready() -> bool:
            self.child.check_alive()
            return answers(self.port)

        wait_until(ready, timeout_s=30, what=f"the start of the baseline {self.name}")

    def end(self) -> None:
        """Stop it."""
        self.child.end()
        shutil.rmtree(self.folder, ignore_errors=True)
