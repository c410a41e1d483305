"""Print how long failed logins take by cause, and what 50 logins at once do to charges.

Equal answers must come in equal time: the medians of the causes should lie within 10 % of each other.
Usage: .venv/bin/python scripts/login_timing.py  (starts a throw-away service of its own)
"""

import asyncio
import statistics
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.service import Service, random_cpf

TRIES = 200
CHARGES = 300


async def login(service: Service, tenant: str, document: str, password: str) -> tuple[int, float]:
    """Log in once and return the status and the seconds it took."""
    began = time.perf_counter()
    headers = {"X-Tenant-Id": tenant, "Accept": "application/json"}
    body = {"document": document, "password": password}
    reply = await service.request("POST", "/authenticate", json=body, headers=headers)
    return reply.status, time.perf_counter() - began


async def compare_causes(service: Service) -> None:
    """Interleave the four causes so that noise hits them alike, and print their medians."""
    tenant = service.demo["tenantId"]
    known = await service.new_account()
    closed = await service.new_account()
    await service.admin("PATCH", f"/admin/v1/entities/{closed.entity_id}", {"status": "CLOSED"})
    causes = {
        "unknown tenant": lambda: (str(uuid.uuid4()), known.document, "wrong password"),
        "unknown document": lambda: (tenant, random_cpf(), "wrong password"),
        "wrong password": lambda: (known.tenant_id, known.document, "wrong password"),
        "closed entity": lambda: (closed.tenant_id, closed.document, "correct horse battery"),
    }
    times: dict[str, list[float]] = {name: [] for name in causes}
    for _ in range(TRIES):
        for name, make in causes.items():
            status, seconds = await login(service, *make())
            assert status == 401, (name, status)
            times[name].append(seconds)
    medians = {name: statistics.median(values) * 1000 for name, values in times.items()}
    for name, median_ms in medians.items():
        print(f"{name:18} median {median_ms:7.2f} ms over {TRIES}")
    print(f"spread: {max(medians.values()) / min(medians.values()) - 1:.1%}")


async def charge_p99(service: Service, api_key: str) -> float:
    """Create charges one after the other on 8 connections and return the 99th percentile in seconds."""
    times: list[float] = []

    async def caller() -> None:
        for _ in range(CHARGES // 8):
            began = time.perf_counter()
            reply = await service.post("/v1/charges", api_key, {"variant": "simple", "amountCents": "100"})
            assert reply.status == 201, reply.body
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(caller() for _ in range(8)))
    return statistics.quantiles(times, n=100)[98]


async def compare_charges(service: Service) -> None:
    """Print the charges' p99 alone and while 50 logins at once go on."""
    account = await service.new_account()
    alone = await charge_p99(service, account.api_key)
    stop = asyncio.Event()
    done = 0

    async def client() -> None:
        nonlocal done
        login_body = service.demo["login"]
        while not stop.is_set():
            await login(service, service.demo["tenantId"], login_body["document"], login_body["password"])
            done += 1

    clients = [asyncio.create_task(client()) for _ in range(50)]
    busy = await charge_p99(service, account.api_key)
    stop.set()
    await asyncio.gather(*clients)
    print(
        f"charges p99 alone {alone * 1000:.1f} ms, with 50 logins at once {busy * 1000:.1f} ms: "
        f"{busy / alone:.1f}x ({done} logins)"
    )


async def main() -> None:
    """Run both comparisons."""
    many = {"LASTRO_LOGIN_FAILURES_PER_MINUTE": "100000", "LASTRO_LOGIN_CALLS_PER_MINUTE": "100000"}
    service = Service(env=many).start()
    try:
        await compare_causes(service)
        await compare_charges(service)
        await service.close()
    finally:
        service.destroy()


asyncio.run(main())
