"""The statement explained: every movement has one cause, every cause its movement, funds and limits hold."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.model.history import History
from tests.model.rules import REFUSED, SETTLED, Terms, instant, window_of
from tests.model.seen import Books, Movement, Seen

STATUS_OF_REFUND = {"PENDING": "PENDING", "SUCCEEDED": "POSTED", "FAILED": "REVERSED"}


@dataclass
class Explained:
    """Which movement is what, found while explaining."""

    credits: dict[str, Movement] = field(default_factory=dict)  # by end-to-end id
    holds: dict[str, list[Movement]] = field(default_factory=dict)  # by payout, oldest first
    reversals: dict[str, Movement] = field(default_factory=dict)  # by the movement they reverse
    returns: dict[str, dict[str, Movement]] = field(default_factory=dict)  # by payout, by return id
    cause: dict[str, tuple[str, Any]] = field(default_factory=dict)
    balances: set[int] = field(default_factory=lambda: {0})
    left: dict[str, set[int]] = field(default_factory=lambda: {"daily": set(), "night": set()})


def chain(seen: Seen) -> Iterator[str]:
    """Running balances, instants that never go back, totals."""
    running, last = 0, None
    credits_ = debits = 0
    for item in seen.movements:
        for entry in item.entries:
            running += int(entry["amount"])
            if int(entry["balanceAfter"]) != running:
                yield f"entry {entry['id']}: balanceAfter {entry['balanceAfter']}, the model has {running}"
            if last is not None and instant(entry["createdAt"]) < last:
                yield f"entry {entry['id']} is older than the one before it"
            last = instant(entry["createdAt"])
        credits_ += item.net if item.type == "CREDIT" else 0
        debits -= item.net if item.type == "DEBIT" else 0
    if running != seen.balance:
        yield f"balance {seen.balance}, the movements add up to {running}"
    found = (int(seen.summary["creditsCents"]), int(seen.summary["debitsCents"]))
    if found != (credits_, debits):
        yield f"summary {found}, the movements add up to {(credits_, debits)}"


def explain(terms: Terms, seen: Seen, books: Books, out: Explained) -> Iterator[str]:
    """Give every movement its cause; what has none, or two, or other amounts, is named."""
    by_id = {item.id: item for item in seen.movements}
    yield from _explain_credits(terms, seen, books, out)
    yield from _explain_holds(terms, seen, by_id, out)
    yield from _explain_refunds(seen, by_id, out)
    yield from _explain_returned_credits(terms, seen, books, out)
    for item in seen.movements:
        if item.reverses and item.id not in out.cause:
            yield from _explain_back(item, by_id, out)
    for item in seen.movements:
        if item.id not in out.cause:
            yield f"movement {item.id} ({item.kind} {item.net}) has no cause"
        if item.status == "REVERSED" and item.id not in out.reversals:
            yield f"movement {item.id} is REVERSED, but nothing reverses it"


def _claim(out: Explained, item: Movement, cause: tuple[str, Any]) -> Iterator[str]:
    if item.id in out.cause:
        yield f"movement {item.id} has two causes: {out.cause[item.id][0]} and {cause[0]}"
    out.cause[item.id] = cause


def _explain_credits(terms: Terms, seen: Seen, books: Books, out: Explained) -> Iterator[str]:
    known = books.credits.get(terms.id, {})
    for item in seen.movements:
        if item.kind != "CREDIT PIX_IN":
            continue
        credit = known.get(item.metadata["endToEndId"])
        if credit is None:
            yield f"credit {item.id} of {item.metadata['endToEndId']}: the provider knows no such Pix"
            continue
        if credit["end_to_end_id"] in out.credits:
            yield f"Pix {credit['end_to_end_id']} is credited twice"
        out.credits[credit["end_to_end_id"]] = item
        yield from _claim(out, item, ("credit", credit))
        amount = credit["amount_cents"]
        fee = terms.fee_in(amount)
        lines = [("PRIMARY", amount), *([("FEE", -fee)] if fee else [])]
        if (item.lines, item.fee, item.status) != (lines, fee, "POSTED"):
            yield f"credit {item.id}: {item.lines} {item.fee} {item.status}, the model has {lines} {fee}"


def _explain_holds(terms: Terms, seen: Seen, by_id: dict[str, Movement], out: Explained) -> Iterator[str]:
    named: dict[str, list[str]] = {payout_id: [] for payout_id in seen.payouts}
    for event in seen.events:  # a payout that settled after all has an older, reversed debit
        if event["event"] in {"pix.payout.failed", "pix.payout.cancelled"}:
            named.setdefault(event["data"]["payoutId"], []).append(event["data"]["movementId"])
    for payout in seen.payouts.values():
        ids = [*named[payout["id"]], payout["movementId"]]
        holds = [by_id.get(id_) for id_ in dict.fromkeys(ids)]
        if None in holds:
            yield f"payout {payout['id']}: its debit is not in the statement"
            continue
        out.holds[payout["id"]] = holds
        amount = int(payout["amountCents"])
        fee = terms.fee_out(amount)
        lines = [("PRIMARY", -amount), *([("FEE", -fee)] if fee else [])]
        for hold in holds:
            yield from _claim(out, hold, ("hold" if hold is holds[0] else "taken again", payout))
            status = "REVERSED" if hold is not holds[-1] else _status_of_hold(payout["status"])
            if (hold.kind, hold.lines, hold.fee, hold.status) != ("DEBIT PIX_OUT", lines, fee, status):
                yield (
                    f"payout {payout['id']} ({payout['status']}): its debit {hold.id} is "
                    f"{hold.kind} {hold.lines} {hold.status}, the model has {lines} {status}"
                )


def _status_of_hold(status: str) -> str:
    return "POSTED" if status in SETTLED else "REVERSED" if status in REFUSED else "PENDING"


def _explain_refunds(seen: Seen, by_id: dict[str, Movement], out: Explained) -> Iterator[str]:
    for charge_id, refunds in seen.refunds.items():
        paid_by = seen.charges[charge_id]["coreMovementId"]
        for refund in refunds:
            item = by_id.get(refund["movementId"])
            if item is None:
                yield f"refund {refund['id']}: its debit is not in the statement"
                continue
            yield from _claim(out, item, ("refund", refund))
            lines = [("REVERSAL", -int(refund["amountCents"]))]
            facts = (item.kind, item.lines, item.reverses, item.status, item.return_id)
            wanted = (
                "DEBIT PIX_IN back", lines, paid_by, STATUS_OF_REFUND[refund["status"]],
                refund["refundEndToEndId"],
            )  # fmt: skip
            if facts != wanted:
                yield f"refund {refund['id']}: its debit is {facts}, the model has {wanted}"


def _explain_returned_credits(terms: Terms, seen: Seen, books: Books, out: Explained) -> Iterator[str]:
    """What the provider takes back of a Pix that paid no charge leaves the account once."""
    known: set[str] = set()
    for item in seen.movements:
        kind, credit = out.cause.get(item.reverses or "", ("nothing", None))
        if item.kind != "DEBIT PIX_IN back" or item.id in out.cause or kind != "credit" or credit is None:
            continue
        given = books.returns.get((terms.id, credit["end_to_end_id"]), [])
        if (item.return_id, -item.net) not in [(row["return_id"], row["amount_cents"]) for row in given]:
            yield f"movement {item.id} takes back {item.net}, the provider says {given}"
        if item.return_id in known:
            yield f"return {item.return_id} is taken twice"
        known.add(item.return_id or "")
        yield from _claim(out, item, ("credit returned", credit))


def _explain_back(item: Movement, by_id: dict[str, Movement], out: Explained) -> Iterator[str]:
    """A reversal takes back every line of its original; a return only what came back."""
    original = by_id.get(item.reverses or "")
    kind, cause = out.cause.get(item.reverses or "", ("nothing", None))
    if original is None or cause is None:
        return
    is_return = kind in {"hold", "taken again"} and item.return_id is not None
    if is_return:
        found = out.returns.setdefault(cause["id"], {})
        if item.return_id in found:
            yield f"return {item.return_id} is credited twice"
        found[item.return_id or ""] = item
        yield from _claim(out, item, ("return", cause))
        return
    if kind not in {"hold", "taken again", "refund"}:
        return
    if original.id in out.reversals:
        yield f"movement {original.id} is reversed twice"
    out.reversals[original.id] = item
    yield from _claim(out, item, (f"{kind} reversed", cause))
    lines = [("REVERSAL", -cents) for _, cents in original.lines]
    if (item.type, item.source, item.lines, original.status) != (
        "CREDIT",
        original.source,
        lines,
        "REVERSED",
    ):
        yield f"reversal {item.id}: {item.lines} of {original.id} {original.status}, the model has {lines}"


def replay(terms: Terms, seen: Seen, history: History, out: Explained) -> Iterator[str]:
    """Go through the statement in order: no client spends what is not there, no window overflows."""
    asked = {
        attempt.answer.body["id"]
        for attempt in history.of("refund")
        if attempt.answer is not None and attempt.answer.status == 201
    }
    consumed: dict[tuple[str, datetime], int] = {}
    gone: dict[str, int] = {}
    ceilings = {"daily": terms.daily, "night": terms.night}
    for item in seen.movements:
        kind, cause = out.cause.get(item.id, ("nothing", None))
        after = int(item.entries[-1]["balanceAfter"])
        out.balances.add(after)
        if kind in {"hold", "taken again", "hold reversed", "taken again reversed"}:
            window = window_of(instant(cause["createdAt"]))
            amount = int(cause["amountCents"]) * (-1 if kind.endswith("reversed") else 1)
            consumed[window] = consumed.get(window, 0) + amount
            out.left[window[0]].add(max(0, ceilings[window[0]] - consumed[window]))
            if kind == "hold" and (consumed[window] > ceilings[window[0]] or amount > terms.per_transaction):
                yield f"payout {cause['id']} of {amount} breaks a limit: {window[0]} {consumed[window]}"
        if kind in {"hold", "refund"} and after < 0 and (kind == "hold" or cause["id"] in asked):
            yield f"{kind} {cause['id']} was allowed to a balance of {after}"
        if kind in {"refund", "refund reversed"}:
            gone[cause["chargeId"]] = gone.get(cause["chargeId"], 0) - item.net
            paid = out.credits[seen.charges[cause["chargeId"]]["endToEndId"]].lines[0][1]
            if kind == "refund" and cause["id"] in asked and gone[cause["chargeId"]] > paid:
                yield f"refund {cause['id']}: {gone[cause['chargeId']]} of {paid} refunded"
    yield from _compare_window(terms, seen, consumed, ceilings)


def _compare_window(
    terms: Terms, seen: Seen, consumed: dict[tuple[str, datetime], int], ceilings: dict[str, int]
) -> Iterator[str]:
    shown = seen.limits["daily"]
    window = window_of(instant(shown["windowStart"]))
    used = consumed.get(window, 0)
    left = max(0, ceilings[window[0]] - used)
    wanted = (str(used), str(left), str(left), window[0] == "night")
    found = (
        shown["consumedCents"], shown["remainingCents"], seen.limits["spendableNowCents"],
        seen.limits["night"] is not None,
    )  # fmt: skip
    if found != wanted:
        yield f"limits of {terms.id} since {window[1]}: {found}, the model has {wanted}"
