"""What both baselines share: settings, the request, the values of the rows that a payout writes."""

import hashlib
import json
import os
import random
import string
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from fastapi import Header, HTTPException
from pydantic import BaseModel, Field

DATABASE_URL = os.environ.get("BASELINE_DATABASE_URL", "")
POOL_SIZE = int(os.environ.get("BASELINE_POOL_SIZE", "8"))
NEVER = datetime(2000, 1, 1, tzinfo=UTC)
_CHARACTERS = string.digits + string.ascii_lowercase


def _load_accounts() -> dict[str, str]:
    """Return the accounts behind API keys: in memory, as a cache would have them."""
    path = os.environ.get("BASELINE_ACCOUNTS", "")
    found: dict[str, str] = json.loads(Path(path).read_text()) if path else {}
    return found


ACCOUNTS = _load_accounts()


class NewPayout(BaseModel):
    """The body of `POST /v1/payouts`."""

    pix_key: Annotated[str, Field(alias="pixKey", min_length=1, max_length=200)]
    pix_key_type: Annotated[str, Field(alias="pixKeyType")]
    amount_cents: Annotated[str, Field(alias="amountCents", pattern=r"^[0-9]{1,15}$")]
    description: Annotated[str, Field(max_length=256)] | None = None


def account_of(authorization: Annotated[str, Header()]) -> str:
    """Return the account that the API key reaches."""
    found = ACCOUNTS.get(authorization.removeprefix("Bearer "))
    if found is None:
        raise HTTPException(401)
    return found


def new_id(at: datetime) -> str:
    """Draw a record id that sorts by time, 25 characters."""
    return f"c{int(at.timestamp() * 1000):011x}{''.join(random.choices(_CHARACTERS, k=13))}"


@dataclass(slots=True)
class Draft:
    """The values that do not depend on the account's state."""

    at: datetime
    day_at: datetime
    payout_id: str
    movement_id: str
    end_to_end_id: str
    reference: str
    fingerprint: bytes
    beneficiary: str
    metadata: str
    answer: bytes
    amount_cents: int

    @property
    def first_check_at(self) -> datetime:
        """When the payout would be looked up first."""
        return self.at + timedelta(seconds=2.3)

    @property
    def submit_before(self) -> datetime:
        """Until when the payout may be sent."""
        return self.at + timedelta(seconds=5)


def draft(account_id: str, key: str, body: NewPayout) -> Draft:
    """Draw ids and write the texts of a payout."""
    now = datetime.now(UTC)
    at = now.replace(microsecond=now.microsecond // 1000 * 1000)
    payout_id, movement_id = new_id(at), new_id(at)
    party = {
        "name": "Gabriela Ferreira", "document": "12345678909", "ispb": "60701190",
        "institution": "Itau Unibanco S.A.", "branch": "0001", "account": "1234567", "account_type": "CACC",
    }  # fmt: skip
    shown = {"pixKey": body.pix_key, "pixKeyType": body.pix_key_type, **party, "document": "***.456.789-**"}
    metadata = {
        "date": at.isoformat(), "payer": {"branch": "0001", "account": "12345678"}, "endToEndId": None,
        "beneficiary": shown, "pixAccountId": account_id, "paymentDate": None,
    }  # fmt: skip
    answer = {"kind": "submitted", "payoutId": payout_id, "status": "PROCESSING"}
    return Draft(
        at=at,
        day_at=at.replace(hour=0, minute=0, second=0, microsecond=0),
        payout_id=payout_id,
        movement_id=movement_id,
        end_to_end_id=f"E99999999{at:%Y%m%d%H%M}{payout_id[-11:]}",
        reference=hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(),
        fingerprint=hashlib.sha256(body.model_dump_json().encode()).digest(),
        beneficiary=_dumps(party),
        metadata=_dumps(metadata),
        answer=_dumps(answer).encode(),
        amount_cents=int(body.amount_cents),
    )


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def fee_of(amount_cents: int, fixed_cents: int, bps: int) -> int:
    """Return what a payout costs."""
    return fixed_cents + (amount_cents * bps + 5000) // 10_000


def chain(previous: bytes, *values: object) -> bytes:
    """Hash the accounting columns onto the account's last hash."""
    return hashlib.sha256(previous + "|".join(map(str, values)).encode()).digest()
