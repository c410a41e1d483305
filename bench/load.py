"""Load on an HTTP server: `wrk` when it is installed, else the generator of this folder."""

import json
import secrets
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.children import ROOT, BenchError, Tool, run
from bench.service import Account

SLACK_S = 60.0
WRK_SCRIPT = ROOT / "bench" / "wrk" / "plan.lua"
# Everyday destinations outside of this service: the sandbox accepts and settles them.
DESTINATIONS = 997


@dataclass(frozen=True)
class Result:
    """What one run of one side showed."""

    count: int
    seconds: float
    failed: int
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Successful answers a second."""
        return (self.count - self.failed) / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the results file."""
        return {**asdict(self), "rate": round(self.rate, 1)}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies; the values are sorted already."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def median(values: Iterable[float]) -> float:
    """Return the middle value."""
    return statistics.median(values)


@dataclass(frozen=True)
class Request:
    """One line of a plan."""

    method: str
    path: str
    api_key: str
    body: str = ""


def payout_requests(accounts: Sequence[Account]) -> list[Request]:
    """Return payouts of these accounts to many destinations, each account equally often."""
    lines = max(len(accounts), DESTINATIONS)
    return [
        Request("POST", "/v1/payouts", accounts[n % len(accounts)].api_key, _payout_body(n))
        for n in range(lines - lines % len(accounts))
    ]


def _payout_body(number: int) -> str:
    body = {
        "pixKey": f"cliente{number % DESTINATIONS}@exemplo.com.br", "pixKeyType": "EMAIL",
        "amountCents": "100", "description": "Repasse da semana",
    }  # fmt: skip
    return json.dumps(body, separators=(",", ":"))


class Plan:
    """A file of requests that both generators understand."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lastro-plan-"))
        self.path = self.folder / "plan.tsv"
        lines = [f"{r.method}\t{r.path}\t{r.api_key}\t{r.body}" for r in requests]
        self.path.write_text("\n".join(lines) + "\n")

    def remove(self) -> None:
        """Remove the file."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """A run of requests that can be started beside another one."""

    def __init__(
        self, port: int, plan: Plan, *, connections: int, seconds: float, per_second: float = 0
    ) -> None:
        self.seconds = seconds
        wrk = None if per_second else shutil.which("wrk")
        salt = secrets.token_hex(8)
        if wrk:
            command = [
                wrk, "-t", "1", "-c", str(connections), "-d", f"{max(1, round(seconds))}s",
                "--timeout", "30s", "-s", str(WRK_SCRIPT), f"http://127.0.0.1:{port}",
                "--", str(plan.path), salt,
            ]  # fmt: skip
        else:
            command = [
                sys.executable, "-m", "bench.generator", str(port), str(plan.path), salt,
                str(connections), str(seconds), str(per_second),
            ]  # fmt: skip
        self._tool = Tool(command)

    def result(self) -> Result:
        """Wait for the end and return what was seen."""
        done = self._tool.finish(timeout_s=self.seconds + SLACK_S)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if not lines:
            raise BenchError(f"the load generator failed: {done.stdout} {done.stderr}")
        return Result(**json.loads(lines[-1].removeprefix("RESULT ")))


def load(port: int, plan: Plan, *, connections: int, seconds: float, per_second: float = 0) -> Result:
    """Send requests for a while and return what was seen."""
    return Load(port, plan, connections=connections, seconds=seconds, per_second=per_second).result()


def generator_name() -> str:
    """Return what makes the load, for the report."""
    wrk = shutil.which("wrk")
    if wrk is None:
        return "bench/generator.py"
    said = run([wrk, "--version"], timeout_s=10)
    return " ".join((said.stdout or said.stderr).split()[:2])
