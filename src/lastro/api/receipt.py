"""Receipts of settled payouts and paid charges."""

import asyncio
from datetime import datetime

from lastro.accounts.model import Holder
from lastro.accounts.queries import load_holder
from lastro.api.call import Answer, Call
from lastro.api.gates import account_of
from lastro.api.movements import load_origin
from lastro.api.receipt_page import Person, Receipt, draw
from lastro.api.routes import Rate, Route
from lastro.charges.model import Charge, ChargeStatus
from lastro.kit.documents import mask_document
from lastro.kit.errors import InvalidState, NotFound
from lastro.ledger.exports import read_metadata
from lastro.ledger.model import MovementStatus
from lastro.ledger.statement import MovementRow, load_movement
from lastro.payouts.decide import beneficiary_of
from lastro.payouts.model import Payout, PayoutStatus
from lastro.services import Services

MEDIA_TYPE = "application/pdf"


async def get_receipt(call: Call) -> Answer:
    """GET /v1/movements/{id}/receipt."""
    services, account = call.desk.services, account_of(call)
    movement = await load_movement(services.pool, account.account_id, call.path["id"])
    holder = await load_holder(services.pool, account.account_id)
    if movement is None or holder is None:
        raise NotFound
    if movement.status != MovementStatus.POSTED or movement.reverses_id is not None:
        raise InvalidState("Only a settled payout or a paid charge has a receipt.")
    payout, charge = await load_origin(services.pool, account, movement)
    receipt = _receipt(services, holder, movement, payout, charge)
    body = await asyncio.to_thread(draw, receipt)
    name = f"receipt-{movement.movement_id}.pdf"
    return Answer(
        body, media_type=MEDIA_TYPE, headers=(("Content-Disposition", f'inline; filename="{name}"'),)
    )


def _receipt(
    services: Services, holder: Holder, movement: MovementRow, payout: Payout | None, charge: Charge | None
) -> Receipt:
    own = Person(
        holder.name,
        mask_document(holder.document),
        services.settings.bank_name,
        holder.branch,
        holder.account_number,
    )
    now = services.clock.now()
    if payout is not None and payout.status in {PayoutStatus.SUCCEEDED, PayoutStatus.REFUNDED}:
        return _of_payout(services, own, movement, payout, now)
    if charge is not None and charge.status in {ChargeStatus.PAID, ChargeStatus.REFUNDED}:
        return _of_charge(services, own, movement, charge, now)
    raise InvalidState("Only a settled payout or a paid charge has a receipt.")


def _of_payout(
    services: Services, own: Person, movement: MovementRow, payout: Payout, now: datetime
) -> Receipt:
    to = beneficiary_of(payout)
    return Receipt(
        title="Comprovante de Pix enviado",
        amount_cents=payout.amount_cents,
        paid_at=payout.paid_at or movement.at,
        payer=own,
        beneficiary=Person(to.name, mask_document(to.document), to.institution, to.branch, to.account),
        end_to_end_id=payout.end_to_end_id,
        ids=(("Pagamento", payout.payout_id), ("Movimento", movement.movement_id)),
        fee_cents=payout.fee_cents,
        refunded_cents=payout.refunded_cents,
        description=payout.description,
        issuer=services.settings.bank_name,
        issued_at=now,
    )


def _of_charge(
    services: Services, own: Person, movement: MovementRow, charge: Charge, now: datetime
) -> Receipt:
    payer = Person(
        charge.payer_name or "",
        charge.payer_document or "",
        charge.payer_institution or "",
        *_payer_account(movement),
    )
    return Receipt(
        title="Comprovante de Pix recebido",
        amount_cents=charge.paid_cents,
        paid_at=charge.paid_at or movement.at,
        payer=payer,
        beneficiary=own,
        end_to_end_id=charge.end_to_end_id or "",
        ids=(("Cobrança", charge.charge_id), ("TXID", charge.txid), ("Movimento", movement.movement_id)),
        fee_cents=movement.fee_cents or 0,
        refunded_cents=charge.refunded_cents,
        description=charge.tag,
        issuer=services.settings.bank_name,
        issued_at=now,
    )


def _payer_account(movement: MovementRow) -> tuple[str, str]:
    payer = read_metadata(movement).get("payer") or {}
    return payer.get("branch") or "", payer.get("account") or ""


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/movements/{id}/receipt", get_receipt, "Download the receipt of a payment",
        Rate("GET /v1/movements/:id/receipt", 30), tag="Statement", media_type=MEDIA_TYPE,
        errors=(NotFound, InvalidState),
    ),
]  # fmt: skip
