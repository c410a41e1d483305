"""A plain look at a service: does it answer, with what, and what time is it there."""

import http.client
import json
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lastro.kit.clock import Clock

TIMEOUT_S = 5.0


class Seen(NamedTuple):
    """An answer: its status, its JSON where it is JSON, and how far the clock there is ahead of ours."""

    status: int
    body: Any
    ahead: timedelta | None


def look(base_url: str, path: str = "/readyz") -> Seen:
    """Ask once, without a credential; an OSError says that nobody answers."""
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        asked_at = Clock.real()
        connection.request("GET", parts.path.rstrip("/") + path)
        response = connection.getresponse()
        raw = response.read()
        middle = asked_at + (Clock.real() - asked_at) / 2
        return Seen(response.status, _json(raw), _ahead(response.headers.get("Date"), middle))
    except http.client.HTTPException as error:
        raise ConnectionError(f"it does not speak HTTP: {error!r}") from error
    finally:
        connection.close()


def _json(raw: bytes) -> Any:  # noqa: ANN401
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _ahead(date: str | None, here: datetime) -> timedelta | None:
    if date is None:
        return None
    try:
        # The header is cut to the second: half of one is the best guess of what is missing.
        return parsedate_to_datetime(date) + timedelta(milliseconds=500) - here
    except (ValueError, TypeError):
        return None
