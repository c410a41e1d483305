"""Before sending: who stands behind a Pix key or a code, and DICT's bucket against scanning."""

import math
from collections.abc import Awaitable
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

import msgspec

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts_of_entity
from lastro.kit import brcode
from lastro.kit.clock import day_of
from lastro.kit.deadline import Within
from lastro.kit.documents import PixKeyType, guess_pix_key_type, normalise_pix_key
from lastro.kit.errors import (
    AmountMismatch,
    DecodeExpired,
    DecodeMismatch,
    InvalidQrCode,
    LookupExpired,
    LookupMismatch,
    PixKeyNotFound,
    ProviderUnavailable,
    QrCodeAlreadyPaid,
    QrCodeExpired,
    QrCodeNotFound,
    QrCodeUnsupported,
    RateLimited,
    SameAccount,
)
from lastro.kit.ids import id_floor
from lastro.payouts.decide import Destination
from lastro.payouts.model import Lookup, LookupKind, PaymentMethod
from lastro.payouts.queries import COUNT_SENT, INSERT_LOOKUP, LOCK_BUCKET, PUT_BUCKET, load_lookup
from lastro.provider.port import ChargeStatus, KeyHolder, Party, Unknown
from lastro.services import Services
from lastro.store.pool import Connection

VALID_S = 900
COST_FOUND = 1
COST_NOT_FOUND = 20
PROVIDER_TIMEOUT_S = 10

Found = TypeVar("Found")


class Bucket(NamedTuple):
    """How many lookups an account holder may make: capacity, refill a minute, reward for a payment sent."""

    capacity: int
    per_minute: int
    per_payment: int


PERSON = Bucket(100, 2, 1)
COMPANY = Bucket(1_000, 20, 2)


class Code(NamedTuple):
    """What a decoded code asks for."""

    type: str
    pix_key: str | None
    pix_key_type: str | None
    amount_cents: int | None
    amount_editable: bool
    receiver: Party
    receiver_account_id: str | None
    txid: str | None
    expires_at: datetime | None
    due_on: date | None
    fine_cents: int


async def find_key(services: Services, pix_key: str, pix_key_type: str | None) -> KeyHolder:
    """Ask DICT; nobody behind the key is 404, no answer is 503."""
    found = await _ask(services.provider.look_up_key(pix_key, pix_key_type))
    if found is None:
        raise PixKeyNotFound(param="pixKey")
    return found


async def _ask(question: Awaitable[Found | Unknown]) -> Found:
    """Wait for the provider's answer, but not for ever; none is 503, whatever the adapter ran into."""
    try:
        with Within(PROVIDER_TIMEOUT_S):
            found = await question
    except TimeoutError:
        raise ProviderUnavailable(retry_after_s=1) from None
    if isinstance(found, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    return found


async def store_lookup(
    services: Services, account_id: str, lookup_id: str, found: KeyHolder | Code, subject: str
) -> Lookup:
    """Keep a lookup or decode for a quarter of an hour."""
    now = services.clock.now()
    kind = LookupKind.DICT if isinstance(found, KeyHolder) else LookupKind.QR
    lookup = Lookup(
        account_id=account_id,
        lookup_id=lookup_id,
        kind=kind,
        subject=subject,
        found=msgspec.json.encode(found).decode(),
        expires_at=now + timedelta(seconds=VALID_S),
        created_at=now,
    )
    await services.pool.execute(INSERT_LOOKUP, *lookup)
    return lookup


async def destination_by_key(
    services: Services, account: Account, pix_key: str, pix_key_type: str, lookup_id: str | None
) -> Destination:
    """Find where a payout by key goes, from the prior lookup when one is named."""
    if lookup_id is None:
        holder = await find_key(services, pix_key, pix_key_type)
    else:
        lookup = await load_lookup(services.pool, account.account_id, lookup_id, LookupKind.DICT)
        if lookup is None or lookup.subject != pix_key:
            raise LookupMismatch(param="dictLookupId")
        if lookup.expires_at <= services.clock.now():
            raise LookupExpired(param="dictLookupId")
        holder = msgspec.json.decode(lookup.found, type=KeyHolder)
    if holder.account_id == account.account_id:
        raise SameAccount(param="pixKey")
    return Destination(PaymentMethod.PIX_KEY, pix_key, pix_key_type, holder.holder, holder.account_id)


async def destination_by_code(
    services: Services, account: Account, text: str, amount_cents: int, decode_id: str | None
) -> Destination:
    """Find where a payout by QR code goes, and hold it to the code's amount."""
    if decode_id is None:
        code = await decode(services, text, paid_on=None)
    else:
        lookup = await load_lookup(services.pool, account.account_id, decode_id, LookupKind.QR)
        if lookup is None or lookup.subject != text:
            raise DecodeMismatch(param="qrCodeDecodeId")
        if lookup.expires_at <= services.clock.now():
            raise DecodeExpired(param="qrCodeDecodeId")
        code = msgspec.json.decode(lookup.found, type=Code)
        if code.due_on is not None:
            # Its price depends on the day, and the decode may have asked for another one than today.
            code = await decode(services, text, paid_on=None)
    if code.expires_at is not None and code.expires_at <= services.clock.now():
        raise QrCodeExpired
    if code.receiver_account_id == account.account_id:
        raise SameAccount(param="pixCopyAndPaste")
    if code.amount_cents is not None and not code.amount_editable and code.amount_cents != amount_cents:
        raise AmountMismatch(param="amountCents", expectedCents=str(code.amount_cents))
    return Destination(
        method=PaymentMethod.QR_CODE,
        pix_key=code.pix_key or "",
        pix_key_type=code.pix_key_type,
        party=code.receiver,
        receiver_account_id=code.receiver_account_id,
        qr_code=text,
        qr_code_decode_id=decode_id,
        txid=code.txid,
    )


def read_code(text: str) -> brcode.BrCode:
    """Read a BR Code, or say by name what is wrong with it."""
    try:
        return brcode.read(text)
    except brcode.BrCodeError as error:
        raise InvalidQrCode(param="pixCopyAndPaste", reason=error.reason) from None


async def decode(services: Services, text: str, *, paid_on: date | None) -> Code:
    """Decode a code and find who stands behind it."""
    code = read_code(text)
    if code.recurrence_only:
        raise QrCodeUnsupported
    if code.url is not None:
        return await _decode_dynamic(services, code, paid_on or day_of(services.clock.now()))
    return await _decode_static(services, code)


async def _decode_static(services: Services, code: brcode.BrCode) -> Code:
    key_type = guess_pix_key_type(code.pix_key or "")
    if key_type is None:
        raise InvalidQrCode(param="pixCopyAndPaste", reason="pix_key")
    pix_key = normalise_pix_key(code.pix_key or "", PixKeyType(key_type))
    holder = await find_key(services, pix_key, key_type)
    return Code(
        type=code.kind,
        pix_key=pix_key,
        pix_key_type=holder.pix_key_type,
        amount_cents=code.amount_cents,
        amount_editable=code.amount_cents is None,
        receiver=holder.holder,
        receiver_account_id=holder.account_id,
        txid=code.txid,
        expires_at=None,
        due_on=None,
        fine_cents=0,
    )


async def _decode_dynamic(services: Services, code: brcode.BrCode, paid_on: date) -> Code:
    view = await _ask(services.provider.look_up_code(code.url or "", paid_on))
    if view is None or view.status is ChargeStatus.REMOVED:
        raise QrCodeNotFound(param="pixCopyAndPaste")
    if view.status is ChargeStatus.PAID:
        raise QrCodeAlreadyPaid
    if view.status is ChargeStatus.EXPIRED:
        raise QrCodeExpired
    return Code(
        type=code.kind,
        pix_key=view.pix_key,
        pix_key_type=view.pix_key_type,
        amount_cents=view.amount_cents,
        amount_editable=view.amount_editable,
        receiver=view.receiver,
        receiver_account_id=view.account_id,
        txid=view.txid,
        expires_at=view.expires_at,
        due_on=view.due_on,
        fine_cents=view.fine_cents,
    )


def refill(bucket: Bucket, tokens: float, *, minutes: float, sent: int) -> float:
    """Return the tokens after time has passed and payments were sent."""
    return min(float(bucket.capacity), tokens + minutes * bucket.per_minute + sent * bucket.per_payment)


async def take_tokens(services: Services, account: Account, cost: int) -> None:
    """Take a lookup's cost from the holder's bucket; an empty one is 429 until it refills."""
    bucket = PERSON if len(account.label) == 11 else COMPANY
    siblings = [item.account_id for item in await list_accounts_of_entity(services.pool, account.entity_id)]
    async with services.pool.acquire() as connection, connection.transaction():
        tokens = await _tokens(connection, bucket, account.entity_id, siblings, services.clock.now())
        if tokens < 1:
            wait_s = math.ceil((1 - tokens) * 60 / bucket.per_minute)
            raise RateLimited(retry_after_s=wait_s, bucket="dict")
        await connection.execute(PUT_BUCKET, account.entity_id, max(0.0, tokens - cost), services.clock.now())


async def _tokens(
    tx: Connection, bucket: Bucket, entity_id: UUID, account_ids: list[str], now: datetime
) -> float:
    row = await tx.fetchrow(LOCK_BUCKET, entity_id, float(bucket.capacity), now)
    sent = await tx.fetchval(COUNT_SENT, account_ids, id_floor(row["at"]), bucket.capacity)
    minutes = max(0.0, (now - row["at"]).total_seconds() / 60)
    return refill(bucket, row["tokens"], minutes=minutes, sent=sent)
