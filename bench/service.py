"""A throw-away service on a throw-away database, and accounts on it."""

import asyncio
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from bench.children import BenchError, Child, run, wait_until
from lastro.store import embedded
from lastro.store.pg_place import locate

LASTRO = [sys.executable, "-c", "from lastro.cli import main; main()"]
READY_WITHIN_S = 60.0
DRAIN_WITHIN_S = 600.0
CHECK_WITHIN_S = 1800.0
PLENTY_CENTS = "100000000000000"
SETUP_AT_ONCE = 16


@dataclass(frozen=True)
class Account:
    """An account without call limits, with an API key of its own and plenty of money."""

    account_id: str
    api_key: str


def free_port() -> int:
    """Return a port that is free right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int, path: str = "/readyz") -> bool:
    """Tell whether a server on loopback answers 200."""
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5) as link:
            link.sendall(f"GET {path} HTTP/1.0\r\nHost: bench\r\n\r\n".encode())
            return b" 200 " in link.recv(100)
    except OSError:
        return False


class Service:
    """`lastro serve` as a child process, in a directory that is removed at the end."""

    def __init__(self, *args: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="lastro-bench-"))
        self.home.chmod(0o755)  # as root, PostgreSQL runs as another user, who must be able to enter
        self.data_dir = self.home / "data"
        self.port = free_port()
        self.args = args
        self.child: Child | None = None
        self.tenant_id = ""
        self.entity_id = ""

    @property
    def url(self) -> str:
        """Where the API is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> float:
        """Start the service and return after how many seconds it was ready."""
        command = [*LASTRO, "serve", "--port", str(self.port), "--data-dir", str(self.data_dir), *self.args]
        began = time.perf_counter()
        self.child = child = Child(command, log=self.home / "service.log")

        def ready() -> bool:
            child.check_alive()
            return answers(self.port)

        wait_until(ready, timeout_s=READY_WITHIN_S, every_s=0.01, what="the start of the service")
        return time.perf_counter() - began

    def start_worker(self) -> Child:
        """Start the background loops as a process of their own beside `serve --no-worker`."""
        return Child([*LASTRO, "worker", "--data-dir", str(self.data_dir)], log=self.home / "worker.log")

    def stop(self) -> None:
        """Stop the service and its database; the data stays."""
        if self.child is not None:
            self.child.end()
            self.child = None

    def destroy(self) -> None:
        """Stop and remove everything."""
        self.stop()
        try:
            base = locate(self.data_dir.resolve())
        except embedded.EmbeddedError:
            base = None
        if base is not None:
            shutil.rmtree(base, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def resident_mib(self) -> float:
        """Return the resident size of the service's process (PostgreSQL's are apart)."""
        if self.child is None:
            raise BenchError("the service does not run")
        return self.child.resident_kib() / 1024

    @property
    def database_url(self) -> str:
        """Where the database is."""
        url = embedded.database_url(self.data_dir)
        if url is None:
            raise BenchError("no database is running")
        return url

    def check(self) -> dict[str, Any]:
        """Run `lastro check` and return its report."""
        command = [*LASTRO, "check", "--json", "--data-dir", str(self.data_dir)]
        done = run(command, timeout_s=CHECK_WITHIN_S)
        if not done.stdout:
            raise BenchError(f"lastro check said nothing: {done.stderr}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    async def drain(self) -> float:
        """Wait until every payout has settled, then flush, so that the next side starts on a quiet server."""
        began = time.perf_counter()
        db = await asyncpg.connect(self.database_url)
        try:
            while await db.fetchval("SELECT EXISTS (SELECT FROM work WHERE kind = 'payout')"):
                if time.perf_counter() - began > DRAIN_WITHIN_S:
                    raise BenchError("the payouts do not settle")
                await asyncio.sleep(0.1)
            took_s = time.perf_counter() - began
            await db.execute("CHECKPOINT")
        finally:
            await db.close()
        return took_s

    async def ask(
        self, link: aiohttp.ClientSession, method: str, path: str, key: str, body: Any = None
    ) -> Any:
        """Send one request of the set-up; anything but success ends the benchmark."""
        headers = {"Authorization": f"Bearer {key}"}
        if method == "POST":
            headers["Idempotency-Key"] = secrets.token_hex(16)
        async with link.request(method, self.url + path, json=body, headers=headers) as reply:
            given = await reply.json()
            if reply.status >= 300:
                raise BenchError(f"{method} {path} -> {reply.status}: {given}")
            return given

    async def open_accounts(self, count: int, *, funded: bool = True) -> list[Account]:
        """Open accounts of one holder: no call limits, high money limits, plenty of money."""
        gate = asyncio.Semaphore(SETUP_AT_ONCE)
        async with aiohttp.ClientSession() as link:
            if not self.entity_id:
                await self._open_entity(link)

            async def open_one() -> Account:
                async with gate:
                    return await self._open_account(link, funded=funded)

            return list(await asyncio.gather(*(open_one() for _ in range(count))))

    @property
    def admin_token(self) -> str:
        """The token that the sandbox drew for its operator."""
        token: str = json.loads((self.data_dir / "secrets.json").read_text())["adminToken"]
        return token

    async def _open_entity(self, link: aiohttp.ClientSession) -> None:
        tenant = await self.ask(link, "POST", "/admin/v1/tenants", self.admin_token, {"name": "Bench"})
        self.tenant_id = tenant["id"]
        body = {
            "entityType": "COMPANY", "name": "Bench Ltda.", "document": "12ABC34501DE35",
            "email": "bench@example.com", "password": secrets.token_hex(16),
        }  # fmt: skip
        path = f"/admin/v1/tenants/{self.tenant_id}/entities"
        self.entity_id = (await self.ask(link, "POST", path, self.admin_token, body))["id"]

    async def _open_account(self, link: aiohttp.ClientSession, *, funded: bool) -> Account:
        terms = {
            "entityId": self.entity_id, "rateLimitMultiplier": 0, "limitPerTransactionCents": PLENTY_CENTS,
            "limitDailyCents": PLENTY_CENTS, "limitNightCents": PLENTY_CENTS,
            "pixOutFeeCents": "0", "pixInFeeCents": "0", "pixOutFeeBps": 0, "pixInFeeBps": 0,
        }  # fmt: skip
        path = f"/admin/v1/tenants/{self.tenant_id}/pix-accounts"
        account_id = (await self.ask(link, "POST", path, self.admin_token, terms))["id"]
        named = {"pixAccountIds": [account_id]}
        api_key = (await self.ask(link, "POST", "/admin/v1/api-keys", self.admin_token, named))["apiKey"]
        account = Account(account_id, api_key)
        if funded:
            await self._fund(link, account)
        return account

    async def fund(self, account: Account) -> None:
        """Give an account plenty of money."""
        async with aiohttp.ClientSession() as link:
            await self._fund(link, account)

    async def _fund(self, link: aiohttp.ClientSession, account: Account) -> None:
        pix = {"pixAccountId": account.account_id, "amountCents": PLENTY_CENTS}
        await self.ask(link, "POST", "/sandbox/pix-in", account.api_key, pix)


def tidy_environment() -> None:
    """Keep settings of the shell from changing what is measured."""
    for name in [name for name in os.environ if name.startswith("LASTRO_") and name != "LASTRO_PG_BINDIR"]:
        del os.environ[name]
    os.environ["LASTRO_LOG_LEVEL"] = "WARNING"
    # `make` switches compiled files off to keep the tree clean; a service in use has them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "lastro-bench-pycache")
