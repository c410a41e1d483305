"""The OpenAPI 3.1 document, derived from the route table."""

from collections.abc import Sequence
from typing import Any

from lastro import __version__
from lastro.api.routes import Route


def describe(routes: Sequence[Route], base_url: str) -> dict[str, Any]:
    """Describe every route."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = {"summary": route.summary, "responses": {}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lastro", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": paths,
    }
