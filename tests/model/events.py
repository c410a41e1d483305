"""The inbox held against the model: one event for each transition, with exactly the fields of the table."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.model.explain import Explained
from tests.model.rules import SETTLED, Terms, mask
from tests.model.seen import Books, Seen

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
END_TO_END = re.compile(r"E\d{20}[0-9A-Za-z]{11}")
TIMES = ("occurredAt", "receivedAt")
REFUSALS = {"CANCELLED": "pix.payout.cancelled", "FAILED": "pix.payout.failed"}


def events(terms: Terms, seen: Seen, books: Books, out: Explained) -> Iterator[str]:
    """Name what is missing and what is too much."""
    wanted = Counter(_frozen(name, data) for name, data in _expected(terms, seen, books, out))
    found: Counter[tuple[str, Any]] = Counter()
    last = ""
    for event in seen.events:
        data = dict(event["data"])
        for name in TIMES:
            if name in data and not STAMP.fullmatch(data.pop(name)):
                yield f"event {event['id']}: {name} is no UTC instant"
        found[_frozen(event["event"], data)] += 1
        if event["id"] <= last:
            yield f"event {event['id']} is out of order"
        last = event["id"]
    for item, count in (wanted - found).items():
        yield f"missing event x{count}: {item}"
    for item, count in (found - wanted).items():
        yield f"event too much x{count}: {item}"


def _frozen(name: str, data: dict[str, Any]) -> tuple[str, Any]:
    return name, tuple(sorted(data.items()))


def _expected(terms: Terms, seen: Seen, books: Books, out: Explained) -> Iterator[tuple[str, dict[str, Any]]]:
    refused = {
        event["data"]["movementId"]: event for event in seen.events if event["event"] in REFUSALS.values()
    }
    for payout in seen.payouts.values():
        yield from _of_payout(terms, payout, books, out, refused)
    paid = {charge["coreMovementId"]: charge for charge in seen.charges.values() if charge["coreMovementId"]}
    for id_, item in out.credits.items():
        credit = books.credits[terms.id][id_]
        basic = {"endToEndId": id_, "movementId": item.id, "amountCents": str(credit["amount_cents"])}
        if item.id in paid:
            yield "pix.charge.paid", {**basic, **_about(paid[item.id]), "refundEndToEndId": None}
        else:
            yield "pix.in.received", {**basic, **_payer(credit, terms, seen)}
    expired = {e["data"]["chargeId"] for e in seen.events if e["event"] == "pix.charge.expired"}
    for charge in seen.charges.values():
        yield from _of_charge(charge, seen, told=charge["id"] in expired)


def _of_payout(
    terms: Terms, payout: dict[str, Any], books: Books, out: Explained, refused: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = books.submissions.get((terms.id, payout["providerTransactionId"]), [])
    holds = out.holds.get(payout["id"], [])
    basic = {"payoutId": payout["id"], "amountCents": payout["amountCents"]}
    for hold in holds:
        if hold.id not in out.reversals:
            continue
        # Of an older refusal, and of an order that never left, only the event itself tells the rest.
        event = refused.get(hold.id, {"event": "pix.payout.failed", "data": {}})
        sent = rows[0]["end_to_end_id"] if rows else event["data"].get("endToEndId", "")
        last = hold is holds[-1] and payout["status"] in REFUSALS
        data = {**basic, "movementId": hold.id, "endToEndId": sent if END_TO_END.fullmatch(sent) else "?"}
        reason = payout["providerStatusCode"] if last else event["data"].get("reason")
        yield REFUSALS[payout["status"]] if last else event["event"], {**data, "reason": reason}
    if payout["status"] in SETTLED and holds:
        basic |= {"movementId": holds[-1].id, "endToEndId": payout["endToEndId"]}
        yield "pix.payout.succeeded", basic
        for return_id, item in out.returns.get(payout["id"], {}).items():
            more = {"refundEndToEndId": return_id, "refundAmountCents": str(item.net)}
            yield "pix.payout.refunded", {**basic, **more}


def _about(charge: dict[str, Any]) -> dict[str, Any]:
    return {"tag": charge["tag"], "txid": charge["txid"], "chargeId": charge["id"]}


def _payer(credit: dict[str, Any], terms: Terms, seen: Seen) -> dict[str, str]:
    payer = credit["payer"]
    return {
        "payerName": payer["name"], "payerBranch": payer["branch"], "payerAccount": payer["account"],
        "payerDocument": mask(payer["document"]), "payerInstitution": payer["institution"],
        "paymentDate": credit["paid_at"].strftime("%Y-%m-%d %H:%M:%S.%f+00:00"),
        "pixAccountId": terms.id, "coreAccountId": seen.core_id,
    }  # fmt: skip


def _of_charge(charge: dict[str, Any], seen: Seen, *, told: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    about = {**_about(charge), "amountCents": charge["amountCents"]}
    # A payment in time that was learned late comes after the expiry was told.
    if charge["status"] == "EXPIRED" or (told and charge["status"] in {"PAID", "REFUNDED"}):
        yield "pix.charge.expired", about
    for refund in seen.refunds.get(charge["id"], []):
        if refund["status"] == "SUCCEEDED":
            more = {
                "movementId": charge["coreMovementId"], "endToEndId": charge["endToEndId"],
                "refundEndToEndId": refund["refundEndToEndId"], "refundAmountCents": refund["amountCents"],
            }  # fmt: skip
            yield "pix.charge.refunded", {**about, **more}
