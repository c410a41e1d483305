"""Answers that stand under a form's key, read back: where to go, or why not."""

from typing import Any

import msgspec

from lastro.idempotency.actions import Told
from lastro.kit.errors import LastroError


class RefusedBefore(LastroError):  # noqa: N818  named for what it tells
    """A refusal that is stored under a key, as it was first decided."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        """Take the stored words apart."""
        super().__init__(error.get("message"), param=error.get("param"), **(error.get("details") or {}))
        # The class of the first refusal is gone; its status and code are not.
        self.status, self.code = status, error.get("code", "internal_error")  # type: ignore[misc]


def record_of(told: Told) -> str:
    """Return the id of the record that an answer is about, or raise the refusal that it is."""
    body: dict[str, Any] = msgspec.json.decode(told.body)
    if told.status >= 400:
        raise RefusedBefore(told.status, body.get("error", {}))
    record: str = body.get("payoutId") or body["id"]
    return record
