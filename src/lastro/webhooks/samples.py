"""Sample events for `POST .../test`: exactly the tabled fields, with values that look like the real ones."""

from datetime import datetime

from lastro.accounts.model import Account
from lastro.kit.clock import payment_date, utc
from lastro.kit.ids import alphanumeric, end_to_end_id, new_id
from lastro.outbox.model import DATA_OF, EventData, EventName

AMOUNT_CENTS = "12345"
ABSENT: dict[EventName, dict[str, None]] = {
    EventName.PAYOUT_CANCELLED: {"reason": None},
    EventName.CHARGE_PAID: {"refund_end_to_end_id": None},
}


def sample(name: EventName, account: Account, *, ispb: str, now: datetime) -> EventData:
    """Return plausible data for an event of that name; nothing of it exists in the ledger."""
    values: dict[str, str | None] = {
        "payout_id": new_id(now),
        "charge_id": new_id(now),
        "movement_id": new_id(now),
        "txid": account.short_code + alphanumeric(24),
        "tag": "test",
        "end_to_end_id": end_to_end_id(ispb, now),
        "refund_end_to_end_id": end_to_end_id(ispb, now, letter="D"),
        "amount_cents": AMOUNT_CENTS,
        "refund_amount_cents": AMOUNT_CENTS,
        "reason": "AC03",
        "occurred_at": utc(now),
        "received_at": utc(now),
        "payment_date": payment_date(now),
        "pix_account_id": account.account_id,
        "core_account_id": str(account.core_account_id),
        "payer_name": "Maria da Silva",
        "payer_document": "***.456.789-**",
        "payer_branch": "0001",
        "payer_account": "1234567",
        "payer_institution": "Banco de Exemplo S.A.",
    }
    values.update(ABSENT.get(name, {}))
    kind = DATA_OF[name]
    return kind(**{field: values[field] for field in kind.__struct_fields__})
