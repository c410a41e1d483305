"""Charges for tests: bodies to ask with, and the contract's forms to hold every answer against."""

import base64
import io
import re
from datetime import datetime, timedelta
from typing import Any

import zxingcpp
from PIL import Image

from lastro.kit.clock import SAO_PAULO

CPF = "52998224725"
CNPJ = "11444777000161"
LETTERED_CNPJ = "12ABC34501DE35"
TEXT = re.compile(r"(?s).+")
CENTS = re.compile(r"-?(0|[1-9]\d*)")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")
MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\dT00:00:00\.000-03:00")
UTC_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
RECORD_ID = re.compile(r"c[0-9a-z]{24}")
END_TO_END = re.compile(r"E\d{20}[A-Za-z0-9]{11}")
RETURN_ID = re.compile(r"D\d{20}[A-Za-z0-9]{11}")

# Name -> (pattern of the value, may it be null): the contract's table of a charge, summary form.
SUMMARY = {
    "id": (RECORD_ID, False), "pixAccountId": (RECORD_ID, False),
    "variant": (re.compile("simple|debtor|cobv"), False),
    "status": (re.compile("PENDING|PAID|EXPIRED|REFUNDED|FAILED|CANCELLED"), False),
    "amountCents": (CENTS, False), "txid": (re.compile(r"[a-zA-Z0-9]{32}"), False),
    "providerQrId": (TEXT, False), "brCode": (TEXT, True), "imageUrl": (re.compile(r"http.+\.png"), True),
    "expiresAt": (STAMP, True), "dueDate": (MIDNIGHT, True), "fineDate": (MIDNIGHT, True),
    "debtorName": (TEXT, True), "debtorDocument": (TEXT, True),
    "debtorTypeDocument": (re.compile("CPF|CNPJ"), True),
    "typeFine": (re.compile("NONE|VALUE|PERCENT"), True), "fine": (float, True),
    "tag": (TEXT, True), "externalRef": (re.compile(r"(?s).{1,64}"), True),
    "endToEndId": (END_TO_END, True), "coreMovementId": (RECORD_ID, True), "paidAt": (STAMP, True),
    "payerName": (TEXT, True), "payerDocument": (re.compile(r"\*.*"), True), "payerInstitution": (TEXT, True),
    "payerInstitutionIspb": (re.compile(r"\d{8}"), True), "refundEndToEndId": (RETURN_ID, True),
    "refundedAt": (STAMP, True), "refundedAmountCents": (CENTS, False), "failureReason": (TEXT, True),
    "createdAt": (STAMP, False), "updatedAt": (STAMP, False),
}  # fmt: skip
AFTER_PAYMENT = (
    "endToEndId", "coreMovementId", "paidAt", "payerName", "payerDocument", "payerInstitution",
    "payerInstitutionIspb",
)  # fmt: skip
PROVIDER_RESPONSE = {
    "id", "tx_id", "status", "amount", "br_code", "base_64_image_url", "expiration_date", "due_date",
    "created_at",
}  # fmt: skip
EMBEDDED_ACCOUNT = {
    "id", "tenantId", "label", "enabled", "limitPerTransactionCents", "limitDailyCents", "limitNightCents",
    "createdAt",
}  # fmt: skip
EVENT_FIELDS = {
    "pix.in.received": {
        "payerName", "endToEndId", "movementId", "receivedAt", "amountCents", "payerBranch", "paymentDate",
        "payerAccount", "pixAccountId", "coreAccountId", "payerDocument", "payerInstitution",
    },
    "pix.charge.paid": {
        "tag", "txid", "chargeId", "endToEndId", "movementId", "occurredAt", "amountCents",
        "refundEndToEndId",
    },
    "pix.charge.expired": {"tag", "txid", "chargeId", "occurredAt", "amountCents"},
    "pix.charge.refunded": {
        "tag", "txid", "chargeId", "movementId", "endToEndId", "refundEndToEndId", "amountCents",
        "occurredAt", "refundAmountCents",
    },
}  # fmt: skip


def check_summary(charge: dict[str, Any]) -> dict[str, Any]:
    """Hold a charge against the summary form: exact names, exact types, null only where allowed."""
    assert set(charge) == set(SUMMARY), set(charge) ^ set(SUMMARY)
    _check_values(charge)
    return charge


def check_full(charge: dict[str, Any]) -> dict[str, Any]:
    """Hold a charge against the full form."""
    assert set(charge) == {*SUMMARY, "imageBase64", "depositSnapshot"}, set(charge) ^ set(SUMMARY)
    _check_values(charge)
    assert isinstance(charge["imageBase64"], str)
    assert set(charge["depositSnapshot"]) == {"request", "providerResponse"}
    return charge


def check_refreshed(body: dict[str, Any]) -> dict[str, Any]:
    """Hold an answer of refresh against its form and return the charge in it."""
    assert set(body) == {"kind", "charge", "providerStatus"}
    assert body["kind"] in {"unchanged", "updated"}
    charge = dict(body["charge"])
    account = charge.pop("pixAccount")
    assert set(account) == EMBEDDED_ACCOUNT
    assert account["id"] == charge["pixAccountId"]
    assert STAMP.fullmatch(account["createdAt"])
    assert type(account["enabled"]) is bool
    for name in ("limitPerTransactionCents", "limitDailyCents", "limitNightCents"):
        assert CENTS.fullmatch(account[name])
    return check_full(charge)


def _check_values(charge: dict[str, Any]) -> None:
    for name, (pattern, nullable) in SUMMARY.items():
        value = charge[name]
        if value is None:
            assert nullable, f"{name} is null"
        elif pattern is float:
            assert type(value) in {int, float}, f"{name} is {value!r}"
        else:
            assert isinstance(value, str), f"{name} is {value!r}"
            assert pattern.fullmatch(value), f"{name} is {value!r}"


def simple(amount_cents: int = 1_000, **more: Any) -> dict[str, Any]:
    """The body of a simple charge."""
    return {"variant": "simple", "amountCents": str(amount_cents), **more}


def debtor(amount_cents: int = 1_000, **more: Any) -> dict[str, Any]:
    """The body of a charge with a debtor."""
    who = {"debtorName": "Maria de Souza", "debtorDocument": CPF}
    return {"variant": "debtor", "amountCents": str(amount_cents), **who, **more}


def cobv(amount_cents: int = 1_000, *, due_in_days: int = 7, **more: Any) -> dict[str, Any]:
    """The body of a charge with a due date."""
    due = {"dueDate": (today() + timedelta(days=due_in_days)).isoformat()}
    return {**debtor(amount_cents), "variant": "cobv", **due, **more}


def today():
    """The real day in Sao Paulo: only for services whose clock nobody moved."""
    return datetime.now(SAO_PAULO).date()


async def create(service, account, body: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Create a charge and return its summary."""
    reply = await service.post("/v1/charges", account.api_key, body or simple(**more))
    assert reply.status == 201, reply.body
    return check_summary(reply.body)


async def pay(service, account, charge: dict[str, Any], **body: Any) -> str:
    """Pay a charge and return the end-to-end id."""
    reply = await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key, body)
    assert reply.status == 200, reply.body
    return reply.body["endToEndId"]


async def read(service, account, charge: dict[str, Any]) -> dict[str, Any]:
    """Read a charge in its full form."""
    reply = await service.get(f"/v1/charges/{charge['id']}", account.api_key)
    assert reply.status == 200, reply.body
    return check_full(reply.body)


async def refresh(service, account, charge: dict[str, Any]) -> dict[str, Any]:
    """Refresh a charge and return the answer."""
    reply = await service.post(f"/v1/charges/{charge['id']}/refresh", account.api_key)
    assert reply.status == 200, reply.body
    check_refreshed(reply.body)
    return reply.body


async def events(service, account, name: str | None = None) -> list[dict[str, Any]]:
    """Read the account's events, oldest first, each with exactly the tabled fields."""
    query = f"&event={name}" if name else ""
    reply = await service.get(f"/v1/inbox?limit=200{query}", account.api_key)
    assert reply.status == 200, reply.body
    for event in reply.body["events"]:
        assert set(event["data"]) == EVENT_FIELDS[event["event"]], event
    return reply.body["events"][::-1]


async def becomes(service, account, charge: dict[str, Any], status: str) -> dict[str, Any]:
    """Wait until a charge has a status."""

    async def probe():
        found = await read(service, account, charge)
        return found if found["status"] == status else None

    return await service.until(probe)


def read_png(raw: bytes) -> str:
    """Read the code in a PNG with a QR reader."""
    image = Image.open(io.BytesIO(raw))
    assert image.format == "PNG"
    found = zxingcpp.read_barcodes(image.convert("L"))
    assert len(found) == 1, f"{len(found)} codes in the picture"
    return found[0].text


def from_base64(text: str) -> bytes:
    """Undo raw base64, strictly."""
    return base64.b64decode(text, validate=True)
