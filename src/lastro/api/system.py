"""Health, readiness, metrics, and the description of the API itself."""

import time
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from lastro.api.call import Answer, Call
from lastro.api.desk import Desk
from lastro.api.openapi import describe
from lastro.api.reference import page
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.api.wire import encode
from lastro.limits.valkey_rates import ValkeyRates
from lastro.store.pool import count_pools

API_ROLE = "api"

_started = time.monotonic()


async def get_health(_: Call) -> dict[str, Any]:
    """Say that the process answers."""
    return {"status": "ok", "uptimeSeconds": int(time.monotonic() - _started)}


async def get_ready(call: Call) -> dict[str, Any]:
    """Say that the database answers, and what an operator should know."""
    return {
        "status": "ready",
        "mode": call.desk.services.settings.mode,
        "warnings": await warnings_of(call.desk),
    }


async def warnings_of(desk: Desk) -> list[str]:
    """Return what works, but not as an operator would want it."""
    warnings = []
    api_processes = await count_pools(desk.services.pool, f"lastro {API_ROLE} ")
    if api_processes > 1 and not desk.services.settings.valkey_url:
        warnings.append(f"{api_processes} API processes without LASTRO_VALKEY_URL: each counts calls alone")
    if isinstance(desk.rates, ValkeyRates) and desk.rates.is_down:
        warnings.append("Valkey does not answer: calls are counted in memory")
    return warnings


async def get_metrics(call: Call) -> Answer:
    """Write the metrics for Prometheus."""
    text = await call.desk.gauges.scrape(call.desk.services, call.desk.in_flight)
    return Answer(text, media_type=CONTENT_TYPE_LATEST)


async def get_openapi(call: Call) -> Answer:
    """Describe the API in OpenAPI 3.1."""
    settings = call.desk.services.settings
    return Answer(encode(describe(call.desk.routes, settings.base_url)))


async def get_docs(call: Call) -> Answer:
    """Show the reference page; everything on it comes from this server."""
    settings = call.desk.services.settings
    document = describe(call.desk.routes, settings.base_url)
    headers = (("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"),)
    return Answer(page(document).encode(), media_type="text/html; charset=utf-8", headers=headers)


def _route(path: str, handler: Any, summary: str, media_type: str = "application/json") -> Route:  # noqa: ANN401
    return Route(
        "GET", path, handler, summary, Rate("system", 60_000), auth=Auth.OPEN, select=Select.NONE,
        answer=dict[str, Any], media_type=media_type, tag="System",
    )  # fmt: skip


ROUTES: list[Route] = [
    _route("/healthz", get_health, "Is the process alive"),
    _route("/readyz", get_ready, "Can it serve"),
    _route("/metrics", get_metrics, "Metrics for Prometheus", "text/plain"),
    _route("/openapi.json", get_openapi, "This API in OpenAPI 3.1"),
    _route("/docs", get_docs, "The reference page", "text/html"),
]
