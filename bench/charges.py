"""Charges: creating one draws no image, so its cost does not depend on how long drawing takes."""

import asyncio
import json

import aiohttp

from bench.load import Plan, Request, Result, load
from bench.report import Row, latencies
from bench.scale import Scale
from bench.service import SETUP_AT_ONCE, Account, Service

# More than the service keeps drawn, so that most reads have to draw.
CHARGES, CHARGES_QUICK = 1_000, 300
BODY = {"variant": "simple", "amountCents": "1990", "tag": "bench"}


def charge_rows(service: Service, account: Account, scale: Scale) -> list[Row]:
    """Compare creating a charge with drawing the image of one, and that with an image drawn already."""
    ids = asyncio.run(_make(service, account, CHARGES_QUICK if scale.quick else CHARGES))
    plans = {
        "create": Plan([Request("POST", "/v1/charges", account.api_key, json.dumps(BODY))]),
        "draw": Plan([Request("GET", f"/v1/charges/{charge_id}", account.api_key) for charge_id in ids]),
        "drawn": Plan([Request("GET", f"/v1/charges/{ids[0]}", account.api_key)]),
    }
    seen: dict[str, list[Result]] = {name: [] for name in plans}
    for _ in range(scale.rounds):
        for name, plan in plans.items():
            seen[name].append(load(service.port, plan, connections=1, seconds=scale.read_s))
    for plan in plans.values():
        plan.remove()
    create = latencies("POST /v1/charges: commits, draws nothing", seen["create"])
    draw = latencies("GET /v1/charges/{id}: draws the image", seen["draw"])
    drawn = latencies("GET /v1/charges/{id}: the image is at hand", seen["drawn"])
    return [
        Row("creating a charge against reading one whose image is drawn", create, draw),
        Row("reading a charge: drawing the image against having it", draw, drawn),
    ]


async def _make(service: Service, account: Account, count: int) -> list[str]:
    gate = asyncio.Semaphore(SETUP_AT_ONCE)
    async with aiohttp.ClientSession() as link:

        async def one() -> str:
            async with gate:
                made: dict[str, str] = await service.ask(link, "POST", "/v1/charges", account.api_key, BODY)
                return made["id"]

        return list(await asyncio.gather(*(one() for _ in range(count))))
