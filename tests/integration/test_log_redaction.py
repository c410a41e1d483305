"""The log tells what happened and no secret: everything the service and its database wrote is searched."""

import base64
import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest
import pytest_asyncio

from lastro.cli.running import announce
from lastro.store import pg_place
from tests.support.console import PASSWORD, Console
from tests.support.raw import request, send_raw
from tests.support.service import Service, new_key, random_cpf

WRONG = "a-wrong-password-8c1d"
TOKEN = "webhook-token-3f9a7b2c"
PAYER_CPF = random_cpf()
PAYEE_CPF = random_cpf()
CNPJ = "12ABC34501DE35"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def told():
    """A service that writes everything, used well and badly; what it wrote, and what must not be in it."""
    service = Service(env={"LASTRO_LOG_LEVEL": "DEBUG"}).start()
    secrets: dict[str, str] = {
        "admin token": service.admin_token,
        "demo password": service.demo["login"]["password"],
        "demo API key": service.demo["accounts"][0]["apiKey"],
        "shared demo API key": service.demo["multiAccountApiKey"],
        "wrong password": WRONG,
        "webhook token": TOKEN,
        "password": PASSWORD,
        "payer's CPF": PAYER_CPF,
        "payee's CPF": PAYEE_CPF,
        "CNPJ": CNPJ,
        "encryption key": encryption_key(service),
    }
    try:
        await use(service, secrets)
        await misuse(service, secrets)
        await break_it(service)
    finally:
        await service.close()
        service.stop()
    base = pg_place.locate(service.data_dir)
    logs = [service.log_path, *(base.rglob("*.log") if base else [])]
    texts = {path.name: path.read_text(errors="replace") for path in logs}
    greeting = announce(service.demo).strip()
    assert greeting in texts[service.log_path.name], "the sandbox greets with its demo's secrets, once"
    texts[service.log_path.name] = texts[service.log_path.name].replace(greeting, "", 1)
    service.destroy()
    return texts, secrets


def encryption_key(service: Service) -> str:
    stored = (json.loads(path.read_text()) for path in service.data_dir.glob("*.json"))
    keys = next(found["encryptionKeys"] for found in stored if "encryptionKeys" in found)
    return keys.partition(":")[2]


async def use(service: Service, secrets: dict[str, str]) -> None:
    """Log in, call, administer, create endpoints: with every kind of credential there is."""
    account = await service.new_account(balance_cents=50_000)
    company = await service.new_account(entity_type="COMPANY")
    secrets |= {"CPF": account.document, "API key": account.api_key, "company's API key": company.api_key}
    login = {"document": account.document, "password": PASSWORD}
    headers = {"X-Tenant-Id": account.tenant_id, "Accept": "application/json"}
    answer = await service.request("POST", "/authenticate", json=login, headers=headers)
    secrets["access token"] = answer.body.get("accessToken") or answer.body["token"]
    await service.get("/me", secrets["access token"])
    key = account.api_key
    hooks = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["pix.in.received"], "authToken": TOKEN}
    made = await service.post(hooks, key, hook)
    secrets["webhook secret"] = made.body["signingSecret"]
    rotated = await service.post(f"{hooks}/{made.body['id']}/rotate-secret", key)
    secrets["second webhook secret"] = rotated.body["signingSecret"]
    pay = {"pixAccountId": account.pix_account_id, "amountCents": "700", "payerDocument": PAYER_CPF}
    await service.post("/sandbox/pix-in", key, pay)
    await service.post("/v1/dict/lookup", key, {"pixKey": PAYEE_CPF, "pixKeyType": "CPF"})
    for pix_key, kind in [(PAYEE_CPF, "CPF"), ("reject-AC03@sandbox.test", "EMAIL"), (CNPJ, "CNPJ")]:
        body = {"pixKey": pix_key, "pixKeyType": kind, "amountCents": "100"}
        sent = await service.post("/v1/payouts", key, body)
        assert sent.status in {201, 404}, sent.body
    console = Console(service)
    assert (await console.log_in(account)).status == 303
    await console.get(console.base)
    secrets["session cookie"] = console.cookies["lastro_session"]


async def misuse(service: Service, secrets: dict[str, str]) -> None:
    """Send the secrets where they do not belong: wrong places, broken bodies, broken HTTP."""
    account = await service.new_account()
    secrets |= {"second CPF": account.document, "second API key": account.api_key}
    key, wrong_key = account.api_key, secrets["API key"][:-4] + "AAAA"
    secrets["unknown API key"] = wrong_key
    headers = {"X-Tenant-Id": account.tenant_id, "Accept": "application/json"}
    for password in (WRONG, PASSWORD[:-1], "\ud7ff" * 10):
        body = {"document": account.document, "password": password}
        await service.request("POST", "/authenticate", json=body, headers=headers)
        await Console(service).log_in(account, password)
    await service.get("/v1/account", wrong_key)
    await service.get("/admin/v1/tenants", key)
    await service.get(f"/v1/account?apiKey={quote(key)}", key)
    await service.get(f"/v1/payouts/{quote(key)[:60]}", key)
    await service.get(f"/{quote(key)}", key)
    await service.get(f"/admin/v1/pix-keys/{account.document}", service.admin_token)
    entity = {
        "entityType": "PERSON", "name": "x", "document": account.document, "email": "a@b.example",
        "password": PASSWORD,
    }  # fmt: skip
    for _ in range(2):  # the same document again
        await service.admin("POST", f"/admin/v1/tenants/{account.tenant_id}/entities", entity)
    broken = json.dumps({"document": account.document, "password": WRONG, "apiKey": key}).encode()[:-1]
    json_type = {"Content-Type": "application/json"}
    for path in ("/authenticate", "/v1/charges", "/admin/v1/tenants"):
        await service.request("POST", path, key=key, data=broken, headers={**headers, **json_type})
    for bad in (b"\x00", b"\r", b"\n"):
        await send_raw(
            service.port, request("GET /v1/account", b"Authorization: Bearer " + key.encode() + bad + b"x")
        )
    await send_raw(service.port, b"Bearer " + key.encode() + b"\r\n\r\n")
    await service.request("GET", "/v1/account", headers={"Cookie": f"lastro_session={key}"})


async def break_it(service: Service) -> None:
    """Take the database away under requests that carry secrets: failures write the most."""
    account = service.demo["accounts"][0]
    login = service.demo["login"]
    service.kill_database()
    headers = {"X-Tenant-Id": service.demo["tenantId"], "Accept": "application/json"}
    body = {"pixKey": PAYEE_CPF, "pixKeyType": "CPF", "amountCents": "100"}
    for _ in range(3):
        await service.request("POST", "/authenticate", json=login, headers=headers)
        await service.request(
            "POST", "/v1/payouts", key=account["apiKey"], json=body, idempotency_key=new_key()
        )
        await service.admin("GET", "/admin/v1/tenants")


def spellings(secret: str) -> list[str]:
    """The ways in which a secret may stand in a log: as it is, quoted, in base64, in parts that suffice."""
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    found = [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded]
    if len(secret) >= 40:
        found += [secret[:32], secret[-32:]]
    return found


async def test_no_secret_stands_in_any_log(told):
    texts, secrets = told
    leaks = [
        f"{name} in {path}: {line[:300]}"
        for path, text in texts.items()
        for line in text.splitlines()
        for name, secret in secrets.items()
        if any(spelling in line for spelling in spellings(secret))
    ]
    assert leaks == []


async def test_the_logs_were_worth_searching(told):
    """Both programs wrote, failures among it: an empty log would prove nothing."""
    texts, secrets = told
    assert len(texts) >= 2, texts.keys()
    assert "database_un" in texts["service.log"]
    assert len(secrets) > 15
    assert all(len(secret) >= 10 for secret in secrets.values()), "short ones would be found anywhere"


@pytest.mark.parametrize("name", ["API key", "CPF", "webhook secret", "session cookie"])
async def test_the_search_finds_what_is_there(told, name):
    _, secrets = told
    line = f'{{"error": "failed for {secrets[name]}"}}'
    assert any(spelling in line for spelling in spellings(secrets[name]))


async def test_lines_of_the_service_are_json(told):
    """What a collector cannot parse it may drop; words to a person at the terminal begin with our name."""
    texts, _ = told
    told_to_programs = [line for line in texts["service.log"].splitlines() if not line.startswith("lastro: ")]
    for line in filter(None, told_to_programs):
        assert isinstance(json.loads(line), dict), line


VIOLATION = """
import asyncpg, logging, structlog
from lastro.cli.logs import set_up_logging
set_up_logging()
def fail():
    error = asyncpg.UniqueViolationError("duplicate key value violates a constraint")
    error.detail = "Key (document)=(52998224725) already exists."
    raise error
for log in (structlog.get_logger(), logging.getLogger("some.library")):
    try:
        try:
            fail()
        except asyncpg.PostgresError as error:
            raise RuntimeError("it did not work") from error
    except RuntimeError:
        log.exception("broken")
logging.getLogger("some.library").debug("52998224725")
"""


def test_rows_that_the_database_quotes_stay_out():
    """A traceback may go to the log; the values of somebody's row in it may not."""
    command = [sys.executable, "-c", VIOLATION]
    environment = {**os.environ, "LASTRO_LOG_LEVEL": "DEBUG"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["broken", "broken"]
    assert all("duplicate key value" in line["exception"] for line in lines)
    assert "52998224725" not in done.stderr
