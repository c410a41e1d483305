"""A real service in a real process on a real PostgreSQL, and a client that checks every answer's form."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from lastro.store import embedded, pg_place, pg_server
from tests.support.postgres import remove

RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")
ERROR_FIELDS = {"code", "message", "requestId", "param", "details"}


@dataclass
class Reply:
    """One answer, already checked for the headers and the one error shape."""

    status: int
    headers: Any
    body: Any
    raw: bytes

    @property
    def code(self) -> str:
        return self.body["error"]["code"]

    @property
    def param(self) -> str | None:
        return self.body["error"].get("param")


@dataclass
class TestAccount:
    """An account made for one test, without call limits unless asked for."""

    __test__ = False

    pix_account_id: str
    api_key: str
    tenant_id: str
    entity_id: str
    document: str


def check_form(method: str, path: str, reply: Reply) -> None:
    """What must hold of every answer, asserted here and nowhere else."""
    where = f"{method} {path} -> {reply.status}"
    for name in RATE_HEADERS:
        assert name in reply.headers, f"{where}: no {name}"
        assert re.fullmatch(r"\d+", reply.headers[name]), f"{where}: {name} is {reply.headers[name]!r}"
        assert len(reply.headers.getall(name)) == 1, f"{where}: {name} stands twice"
    assert reply.headers.get("X-Request-Id"), f"{where}: no X-Request-Id"
    assert reply.status != 500, f"{where}: {reply.raw!r}"
    if reply.status >= 400:
        assert set(reply.body) == {"error"}, f"{where}: {reply.body}"
        error = reply.body["error"]
        assert {"code", "message", "requestId"} <= set(error) <= ERROR_FIELDS, f"{where}: {error}"
        assert error["code"], f"{where}: {error}"
        assert error["message"], f"{where}: {error}"


def new_key() -> str:
    return uuid.uuid4().hex


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """`lastro serve` as a child process."""

    def __init__(
        self, *, data_dir: Path | None = None, env: dict[str, str] | None = None, args: tuple[str, ...] = ()
    ) -> None:
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="lastro-test-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = env or {}
        self.args = args
        self.process: subprocess.Popen | None = None
        self.demo: dict[str, Any] = {}
        self.log_path = self.data_dir / "service.log"
        self._session: aiohttp.ClientSession | None = None
        self._tenant: str | None = None

    def start(self, *, timeout_s: float = 60, env: dict[str, str] | None = None) -> "Service":
        command = [str(Path(sys.executable).parent / "lastro"), "serve", "--port", str(self.port)]
        command += ["--data-dir", str(self.data_dir), *self.args]
        with self.log_path.open("ab") as log:
            environment = {**os.environ, **self.env, **(env or {})}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.wait_ready(timeout_s)
        demo = self.data_dir / "demo.json"
        self.demo = json.loads(demo.read_text()) if demo.exists() else {}
        return self

    def wait_ready(self, timeout_s: float = 60) -> None:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if self.process and self.process.poll() is not None:
                raise AssertionError(f"service ended with {self.process.returncode}:\n{self.log()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.2) as link:
                    link.sendall(b"GET /readyz HTTP/1.0\r\nHost: x\r\n\r\n")
                    if b" 200 " in link.recv(100):
                        return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"service not ready:\n{self.log()}")

    def log(self) -> str:
        return self.log_path.read_text()[-6000:] if self.log_path.exists() else ""

    @property
    def admin_token(self) -> str:
        return self.demo["adminToken"]

    @property
    def database_url(self) -> str:
        url = embedded.database_url(self.data_dir)
        assert url is not None, "no database is running"
        return url

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def kill_database(self, *, and_wait: bool = False) -> None:
        base = pg_place.locate(self.data_dir)
        found = pg_server.living(base / "cluster") if base else None
        assert found is not None, "no database is running"
        sessions = client_backends(found.pid)
        os.kill(found.pid, signal.SIGKILL)
        # They outlive it by some milliseconds and answer meanwhile: the service would seem ready.
        until = time.monotonic() + (5 if and_wait else 0)
        while any(Path(f"/proc/{pid}").exists() for pid in sessions) and time.monotonic() < until:
            time.sleep(0.002)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def destroy(self) -> None:
        self.stop()
        remove(self.data_dir)

    def check(self) -> tuple[int, dict[str, Any]]:
        """Run `lastro check --json` and return its exit code and report."""
        command = [
            str(Path(sys.executable).parent / "lastro"),
            "check",
            "--json",
            "--data-dir",
            str(self.data_dir),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    async def session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=60)
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        json: Any = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        url: str | None = None,
    ) -> Reply:
        """Send a request; POSTs of the API get a fresh Idempotency-Key unless one is given ('': none)."""
        sent = dict(headers or {})
        if key is not None:
            sent.setdefault("Authorization", f"Bearer {key}")
        names = {name.lower() for name in sent}
        if (
            method == "POST"
            and path.startswith("/v1")
            and "idempotency-key" not in names
            and idempotency_key != ""
        ):
            sent["Idempotency-Key"] = idempotency_key or new_key()
        if json is not None:
            data = _dumps(json)
            sent.setdefault("Content-Type", "application/json")
        session = await self.session()
        target = (url or self.url) + path
        async with session.request(
            method, target, data=data, headers=sent, allow_redirects=False
        ) as response:
            raw = await response.read()
            is_json = response.content_type == "application/json"
            reply = Reply(response.status, response.headers, _loads(raw) if is_json and raw else raw, raw)
        check_form(method, path, reply)
        return reply

    async def get(self, path: str, key: str, **more: Any) -> Reply:
        return await self.request("GET", path, key=key, **more)

    async def post(self, path: str, key: str, json: Any = None, **more: Any) -> Reply:
        return await self.request("POST", path, key=key, json=json if json is not None else {}, **more)

    async def admin(self, method: str, path: str, json: Any = None) -> Reply:
        return await self.request(method, path, key=self.admin_token, json=json)

    async def new_account(
        self, *, balance_cents: int = 0, entity_type: str = "PERSON", **fields: Any
    ) -> TestAccount:
        """Make an entity with an account and an API key of its own, and put money on it."""
        if self._tenant is None:
            self._tenant = (await self.admin("POST", "/admin/v1/tenants", {"name": "Tests"})).body["id"]
        document = random_cpf() if entity_type == "PERSON" else "12ABC34501DE35"
        entity = await self.admin(
            "POST",
            f"/admin/v1/tenants/{self._tenant}/entities",
            {
                "entityType": entity_type,
                "name": "Teste da Silva",
                "document": document,
                "email": "teste@example.com",
                "password": "correct horse battery",
            },
        )
        assert entity.status == 201, entity.body
        fields.setdefault("rateLimitMultiplier", 0)
        body = {"entityId": entity.body["id"], **fields}
        account = await self.admin("POST", f"/admin/v1/tenants/{self._tenant}/pix-accounts", body)
        assert account.status == 201, account.body
        api_key = await self.admin("POST", "/admin/v1/api-keys", {"pixAccountIds": [account.body["id"]]})
        assert api_key.status == 201, api_key.body
        made = TestAccount(
            account.body["id"], api_key.body["apiKey"], self._tenant, entity.body["id"], document
        )
        if balance_cents:
            paid = await self.post(
                "/sandbox/pix-in",
                made.api_key,
                {"pixAccountId": made.pix_account_id, "amountCents": str(balance_cents)},
            )
            assert paid.status == 200, paid.body
        return made

    async def balance(self, account: TestAccount) -> int:
        reply = await self.get("/v1/statement?limit=1", account.api_key)
        assert reply.status == 200, reply.body
        return int(reply.body["balance"])

    async def advance(self, seconds: float) -> None:
        reply = await self.admin("POST", "/sandbox/clock", {"advanceSeconds": seconds})
        assert reply.status == 200, reply.body

    async def until(self, probe: Any, *, timeout_s: float = 30, every_s: float = 0.1) -> Any:
        """Call an async probe until it returns something true."""
        end = time.monotonic() + timeout_s
        while True:
            found = await probe()
            if found:
                return found
            assert time.monotonic() < end, f"it never happened: {probe}"
            await asyncio.sleep(every_s)


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def _loads(raw: bytes) -> Any:
    return json.loads(raw)


def random_cpf() -> str:
    digits = [byte % 10 for byte in os.urandom(9)]
    digits[0] = (digits[1] + 1) % 10
    for length in (10, 11):
        total = sum(digit * weight for digit, weight in zip(digits, range(length, 1, -1), strict=True))
        digits.append(total * 10 % 11 % 10)
    return "".join(map(str, digits))


def client_backends(postmaster: int) -> list[int]:
    """Return the server processes that serve connections."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == postmaster and b"[local]" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return sorted(found)
