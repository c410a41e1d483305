"""Rules of single fields that code enforces, not types: one table for what is asked, one for answers."""

from collections.abc import Iterable
from typing import Any

from lastro.accounts.model import AccountStatus
from lastro.charges.model import Variant
from lastro.identity.decide import API_KEY_ACCOUNTS_MAX, EMAIL_MAX, NAME_MAX, PASSWORD_MAX, PASSWORD_MIN
from lastro.identity.model import EntityStatus, EntityType, OnboardingStep
from lastro.kit.documents import PixKeyType
from lastro.kit.money import BPS_WHOLE, MAX_DIGITS
from lastro.kit.page import CURSOR_LENGTH_MAX, LIMIT_DEFAULT, LIMIT_MAX
from lastro.ledger.model import EntryKind, MovementStatus, MovementType, Source
from lastro.outbox.model import EventName
from lastro.webhooks.model import DeliveryStatus, Outcome

Json = dict[str, Any]

_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_INSTANT = rf"{_DAY}{_TIME}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_ID = {"pattern": "^c[0-9a-z]{24}$"}
_EVENT_ID = {"pattern": "^evt_c[0-9a-z]{24}$"}
_UUID = {"format": "uuid"}
_AMOUNT = {"pattern": "^0*[1-9][0-9]*$", "minLength": 1, "maxLength": MAX_DIGITS}
_SETTING = {"pattern": "^[0-9]+$", "minLength": 1, "maxLength": MAX_DIGITS}
_SHARE = {"minimum": 0, "maximum": BPS_WHOLE}
_RATE = {"minimum": 0, "maximum": 1}
_MONEY = {"pattern": "^-?[0-9]+$"}
_AT = {"format": "date-time"}
_DAY_OR_INSTANT = {"pattern": f"^({_DAY}|{_INSTANT})$"}
_END_TO_END_ID = {"pattern": "^[A-Z][0-9]{20}[0-9A-Za-z]{11}$"}
_OBJECT = {"type": "object"}


def _one_of(values: Iterable[str]) -> Json:
    return {"enum": [str(value) for value in values]}


ASKED: dict[str, Json] = {
    "amountCents": _AMOUNT,
    "pixInFeeCents": _SETTING,
    "pixOutFeeCents": _SETTING,
    "limitPerTransactionCents": _SETTING,
    "limitDailyCents": _SETTING,
    "limitNightCents": _SETTING,
    "blockedCents": _SETTING,
    "pixInFeeBps": _SHARE,
    "pixOutFeeBps": _SHARE,
    "rateLimitMultiplier": {"minimum": 0, "maximum": 100},
    "monthlyGoal": {"minimum": 0, "exclusiveMaximum": 10 ** (MAX_DIGITS - 2)},
    "expirationDate": {"pattern": f"^{_DAY}{_TIME}Z$"},
    "dueDate": _DAY_OR_INSTANT,
    "fineDate": _DAY_OR_INSTANT,
    "fine": {"exclusiveMinimum": 0},
    "paymentDate": {"format": "date"},
    "events": {"uniqueItems": True},
    "url": {"format": "uri", "pattern": "^[hH][tT][tT][pP][sS]?://[!-~]+$"},
    "authToken": {"pattern": "^[ -~]+$"},
    "name": {"minLength": 1, "maxLength": NAME_MAX, "pattern": r"\S"},
    "email": {"maxLength": EMAIL_MAX, "format": "email"},
    "entityType": _one_of(EntityType),
    "onboardingStep": _one_of(OnboardingStep),
    "pixAccountIds": {"minItems": 1, "maxItems": API_KEY_ACCOUNTS_MAX},
    "latencyMs": {"minimum": 0, "maximum": 60_000},
    "errorRate": _RATE,
    "dropRate": _RATE,
    "duplicateRate": _RATE,
    "limit": {"minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
    "cursor": {"minLength": 1, "maxLength": CURSOR_LENGTH_MAX, "pattern": "^[A-Za-z0-9_-]+$"},
    "from": {"format": "date"},
    "to": {"format": "date"},
    "at": _DAY_OR_INSTANT,
    "tenantId": _UUID,
    "IntervalQuery.from": _DAY_OR_INSTANT,
    "IntervalQuery.to": _DAY_OR_INSTANT,
    "Login.document": {"pattern": "^([0-9]{11}|[0-9A-Z]{12}[0-9]{2})$"},
    "Login.password": {"maxLength": 1_024},
    "NewEntity.password": {"minLength": PASSWORD_MIN, "maxLength": PASSWORD_MAX},
    "NewPixKey.pixKeyType": _one_of(PixKeyType),
    "NewPixAccount.status": _one_of(AccountStatus),
    "PixAccountPatch.status": _one_of(AccountStatus),
    "EntityPatch.status": _one_of(EntityStatus),
}

ANSWERED: dict[str, Json] = {
    "id": _ID,
    "pixAccountId": _ID,
    "movementId": _ID,
    "coreMovementId": _ID,
    "reversesMovementId": _ID,
    "payoutId": _ID,
    "chargeId": _ID,
    "webhookId": _ID,
    "qrCodeDecodeId": {"minLength": 10, "maxLength": 64},
    "eventId": _EVENT_ID,
    "EventView.id": _EVENT_ID,
    "tenantId": _UUID,
    "entityId": _UUID,
    "coreAccountId": _UUID,
    "accountId": _UUID,
    "TenantAnswer.id": _UUID,
    "AdminTenantsEntityAnswer.id": _UUID,
    "AuthEntityAnswer.id": _UUID,
    "AccountAnswer.id": _UUID,
    "PixKeyAnswer.id": {"minLength": 1, "maxLength": 77},
    "endToEndId": _END_TO_END_ID,
    "refundEndToEndId": _END_TO_END_ID,
    "amount": _MONEY,
    "balanceAfter": _MONEY,
    "feeAmount": _MONEY,
    "Statement.balance": _MONEY,
    "dueDate": _AT,
    "fineDate": _AT,
    "windowStart": _AT,
    "windowEnd": _AT,
    "at": _AT,
    "now": _AT,
    "metadata": _OBJECT,
    "data": _OBJECT,
    "DepositSnapshot.request": _OBJECT,
    "DepositSnapshot.providerResponse": _OBJECT,
    "providerResponse": {"type": ["object", "null"]},
    "imageUrl": {"format": "uri"},
    "imageBase64": {"contentEncoding": "base64", "contentMediaType": "image/png"},
    "txid": {"pattern": "^[A-Za-z0-9]{1,35}$"},
    "payerInstitutionIspb": {"pattern": "^[0-9]{8}$"},
    "ispb": {"pattern": "^[0-9]{8}$"},
    "beneficiaryInstitution": {"pattern": "^[0-9]{8}$"},
    "event": _one_of(EventName),
    "type": _one_of(MovementType),
    "source": _one_of(Source),
    "kind": {},
    "EntryView.kind": _one_of(EntryKind),
    "MovementView.status": _one_of(MovementStatus),
    "FlatMovement.status": _one_of(MovementStatus),
    "DecodeView.type": {},
    "WebhookDelivery.status": _one_of(DeliveryStatus),
    "WebhookDeliveryDetail.status": _one_of(DeliveryStatus),
    "outcome": _one_of(Outcome),
    "entityType": _one_of(EntityType),
    "onboardingStep": _one_of(OnboardingStep),
    "AuthEntityAnswer.status": _one_of(EntityStatus),
    "AdminTenantsEntityAnswer.status": _one_of(EntityStatus),
    "AccountAnswer.status": _one_of(AccountStatus),
    "PixAccountAnswer.status": _one_of(AccountStatus),
    "pixKeyType": _one_of(PixKeyType),
    "variant": _one_of(Variant),
}


def rules_for(name: str, field: str, *, asked: bool) -> Json:
    """Return the rules of a field: those of its own type first, then those of every field of its name."""
    table = ASKED if asked else ANSWERED
    found = table.get(f"{name}.{field}")
    if found is None:
        found = table.get(field)
    if found is None and not asked:
        found = _by_ending(field)
    return dict(found or {})


def _by_ending(field: str) -> Json:
    if field.endswith("Cents"):
        return _MONEY
    return _AT if field.endswith("At") else {}
