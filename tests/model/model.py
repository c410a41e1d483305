"""The verdict: does what clients and provider saw fit the rules? Empty means agreement."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

from tests.model.events import events
from tests.model.explain import Explained, chain, explain, replay
from tests.model.history import Attempt, History
from tests.model.rules import (
    DAY,
    FORCED_ENDS,
    LATER,
    OPEN,
    REFUSED_CHARGE_CENTS,
    SETTLED,
    Terms,
    day_of,
    instant,
    mask,
    payable,
    scenario,
    scenario_end,
)
from tests.model.seen import Books, Seen


def judge(
    accounts: list[Terms], seen: dict[str, Seen], books: Books, history: History, *, final: bool
) -> list[str]:
    """Compare everything; `final`: nothing may be under way any more."""
    found = [*history.surprises, *answers(history), *reads(history)]
    explained = {terms.id: Explained() for terms in accounts}
    for terms in accounts:
        one, out = seen[terms.id], explained[terms.id]
        parts = (
            chain(one), explain(terms, one, books, out), replay(terms, one, history, out),
            records(terms, one, history), payouts(terms, one, books, history, out, final=final),
            charges(terms, one, books, history, out, final=final), events(terms, one, books, out),
            refusals(terms, one, history, out),
        )  # fmt: skip
        found += [f"{terms.id}: {text}" for part in parts for text in part]
    found += list(submissions(seen, books))
    found += list(credits_of_payouts(accounts, seen, books, history, explained, final=final))
    found += list(alarms(books, history, seen))
    return found


# --- what was told ----------------------------------------------------------------------------------


def answers(history: History) -> Iterator[str]:
    """One key, one answer, byte for byte."""
    for attempt in history.attempts.values():
        bodies = {(told.status, told.raw) for told in attempt.told if told.decided}
        if len(bodies) > 1:
            yield f"key {attempt.key} ({attempt.op}) got {len(bodies)} different answers: {bodies}"


def reads(history: History) -> Iterator[str]:
    """A payout seen twice, one look after the other, went a legal way in between."""
    for payout_id, looks in history.reads.items():
        ordered = sorted(looks)
        for (_, ended, before), (began, _, after) in pairwise(ordered):
            if ended < began and after != before and after not in LATER[before]:
                yield f"payout {payout_id} went from {before} to {after}"


def records(terms: Terms, seen: Seen, history: History) -> Iterator[str]:
    """Exactly the records that clients were told of, with what they asked for."""
    for ops, name, stored in (
        (("charge",), "id", seen.charges),
        (("payout", "qr"), "payoutId", seen.payouts),
    ):
        told: dict[str, Attempt] = {}
        for attempt in history.of(*ops):
            answer = attempt.answer
            if attempt.account != terms.id or answer is None or answer.status != 201:
                continue
            id_ = answer.body[name]
            if id_ in told:
                yield f"{ops[0]} {id_} answers two keys"
            told[id_] = attempt
            if id_ not in stored:
                yield f"{ops[0]} {id_} was answered with 201 and is gone"
            elif stored[id_]["amountCents"] != attempt.body["amountCents"]:
                yield f"{ops[0]} {id_} has {stored[id_]['amountCents']}, asked {attempt.body['amountCents']}"
        for id_ in stored.keys() - told.keys():
            yield f"{ops[0]} {id_} exists, but nobody was told of it"
    client = {
        attempt.answer.body["id"]
        for attempt in history.of("refund")
        if attempt.account == terms.id and attempt.answer is not None and attempt.answer.status == 201
    }
    shown = {refund["id"] for refunds in seen.refunds.values() for refund in refunds}
    for id_ in client - shown:
        yield f"refund {id_} was answered with 201 and is gone"


def refusals(terms: Terms, seen: Seen, history: History, out: Explained) -> Iterator[str]:
    """A refusal for funds or limits names a balance or a rest that once was, and was right."""
    for attempt in history.of("payout", "qr"):
        answer = attempt.answer
        if attempt.account != terms.id or answer is None or answer.status != 422:
            continue
        details, asked = answer.body["error"].get("details", {}), int(attempt.body["amountCents"])
        if answer.code == "insufficient_funds":
            needed, there = int(details["requiredCents"]), int(details["availableCents"])
            if needed != asked + terms.fee_out(asked) or there >= needed:
                yield f"key {attempt.key}: refused {needed} with {there} there"
            if there not in {max(0, cents) for cents in out.balances}:
                yield f"key {attempt.key}: the balance was never {there}"
        if answer.code == "limit_exceeded":
            left, which = int(details["remainingCents"]), details["limit"]
            possible = {
                "per_transaction": {terms.per_transaction},
                "daily": {terms.daily, *out.left["daily"]},
                "night": {terms.night, *out.left["night"]},
            }
            if left >= asked or left not in possible[which]:
                yield f"key {attempt.key}: refused {asked} for {which}, {left} left"
        if answer.code == "same_account" and attempt.about.get("receiver") != terms.id:
            yield f"key {attempt.key}: {attempt.about} is not the own account"


# --- payouts ----------------------------------------------------------------------------------------


def submissions(seen: dict[str, Seen], books: Books) -> Iterator[str]:
    """No order twice, none that is not a payout of ours."""
    ours = {
        (account, payout["providerTransactionId"])
        for account, one in seen.items()
        for payout in one.payouts.values()
    }
    for name, rows in books.submissions.items():
        if name[0] not in seen:
            continue
        if len(rows) > 1:
            yield f"order {name} was submitted {len(rows)} times"
        if name not in ours:
            yield f"order {name} was submitted, but there is no such payout"


def payouts(
    terms: Terms, seen: Seen, books: Books, history: History, out: Explained, *, final: bool
) -> Iterator[str]:
    """Each payout ends as its destination, or what a person forced, says."""
    for payout in seen.payouts.values():
        rows = books.submissions.get((terms.id, payout["providerTransactionId"]), [])
        legal = ends(payout, rows, books, history) | (set() if final else OPEN)
        if payout["status"] not in legal:
            yield f"payout {payout['id']} to {payout['pixKey']} is {payout['status']}, legal: {sorted(legal)}"
        if (payout["endToEndId"] is not None) != (payout["status"] in SETTLED):
            yield f"payout {payout['id']} is {payout['status']} with endToEndId {payout['endToEndId']}"
        if rows and payout["endToEndId"] not in {None, rows[0]["end_to_end_id"]}:
            yield f"payout {payout['id']} has another end-to-end id than its order"
        yield from _returned(terms, payout, books, out, final=final)
        yield from _reason(payout, rows, history)


def ends(payout: dict[str, Any], rows: list[dict[str, Any]], books: Books, history: History) -> set[str]:
    """The legal ends of a payout."""
    if not any(row["arrived"] for row in rows):
        aged = books.now - instant(payout["createdAt"]) >= DAY
        return {"FAILED", "STUCK"} if aged else {"FAILED"}
    found, _ = scenario_end(payout["pixKey"])
    for force in history.forces.get(payout["id"], []):
        found |= FORCED_ENDS[force.about["status"]]
    if books.forced.get((payout["pixAccountId"], payout["providerTransactionId"])):
        found -= OPEN  # a person decided it
    return found


def _returned(
    terms: Terms, payout: dict[str, Any], books: Books, out: Explained, *, final: bool
) -> Iterator[str]:
    """What came back is what the provider gave back, once each."""
    booked = {id_: item.net for id_, item in out.returns.get(payout["id"], {}).items()}
    given = {}
    if payout["endToEndId"] is not None:
        rows = books.returns.get((terms.id, payout["endToEndId"]), [])
        given = {row["return_id"]: row["amount_cents"] for row in rows if row["at"] <= books.now}
        if scenario(payout["pixKey"]) == "refund":
            given[f"D{payout['endToEndId'][1:]}"] = int(payout["amountCents"])
    # An order that a person refused after it had settled: the provider no longer tells what came back of it.
    forced = books.forced.get((terms.id, payout["providerTransactionId"]), {"status": "SETTLED"})
    total, amount = sum(booked.values()), int(payout["amountCents"])
    # What goes beyond the payout itself is not booked: a person is called (see `alarms`).
    is_whole = booked == given or sum(given.values()) > amount <= total
    if not booked.items() <= given.items() or (final and not is_whole and forced["status"] == "SETTLED"):
        yield f"payout {payout['id']}: came back {booked}, the provider gave {given}"
    if total != int(payout["refundedAmountCents"]):
        yield f"payout {payout['id']}: refundedAmountCents {payout['refundedAmountCents']}, booked {total}"
    if payout["status"] in SETTLED and (payout["status"] == "REFUNDED") != (total >= amount):
        yield f"payout {payout['id']} is {payout['status']} with {total} of {amount} back"


def _reason(payout: dict[str, Any], rows: list[dict[str, Any]], history: History) -> Iterator[str]:
    if payout["status"] != "FAILED":
        return
    _, code = scenario_end(payout["pixKey"])
    wanted = {code if any(row["arrived"] for row in rows) else None}
    wanted |= {force.about["code"] for force in history.forces.get(payout["id"], [])}
    if payout["providerStatusCode"] not in wanted:
        yield f"payout {payout['id']} failed with {payout['providerStatusCode']}, the model has {wanted}"


def credits_of_payouts(
    accounts: list[Terms],
    seen: dict[str, Seen],
    books: Books,
    history: History,
    explained: dict[str, Explained],
    *,
    final: bool,
) -> Iterator[str]:
    """A payment between our accounts arrives once; every other credit was paid from outside."""
    by_key = {terms.pix_key: terms.id for terms in accounts}
    by_code = {charge["brCode"]: account for account, one in seen.items() for charge in one.charges.values()}
    internal: set[tuple[str, str]] = set()
    for one in seen.values():
        for payout in one.payouts.values():
            receiver = by_key.get(payout["pixKey"]) or (payout["qrCode"] and by_code.get(payout["qrCode"]))
            if receiver is None or payout["endToEndId"] is None:
                continue
            internal.add((receiver, payout["endToEndId"]))
            credit = books.credits.get(receiver, {}).get(payout["endToEndId"])
            if credit is not None and credit["amount_cents"] != int(payout["amountCents"]):
                yield f"payout {payout['id']} arrived as {credit['amount_cents']}"
            if final and payout["endToEndId"] not in explained[receiver].credits:
                yield f"payout {payout['id']} never arrived at {receiver}"
    told = {
        (pay.account, pay.answer.body["endToEndId"]): pay
        for pay in history.pays
        if pay.answer is not None and pay.answer.status == 200
    }
    maybe = Counter(pay.account for pay in history.pays if pay.answer is None)
    for account in seen:
        known = books.credits.get(account, {})
        strange = [id_ for id_ in known if (account, id_) not in internal and (account, id_) not in told]
        if len(strange) > maybe[account]:
            yield f"{account}: {len(strange)} credits that nobody paid: {strange[:5]}"
        if final:
            for id_ in known.keys() - explained[account].credits.keys():
                yield f"{account}: Pix {id_} of {known[id_]['amount_cents']} was never credited"
    for account, id_ in told.keys() - {(a, i) for a, ids in books.credits.items() for i in ids}:
        yield f"{account}: Pix {id_} was answered and is not in the provider's books"


# --- charges ----------------------------------------------------------------------------------------


def charges(
    terms: Terms, seen: Seen, books: Books, history: History, out: Explained, *, final: bool
) -> Iterator[str]:
    """Each charge stands as its payments, its expiry, its cancellation and its refunds say."""
    cancels: dict[str, list[Attempt]] = {}
    for attempt in history.of("cancel"):
        cancels.setdefault(attempt.about["charge"], []).append(attempt)
    paid_for: dict[str, list[dict[str, Any]]] = {}
    for credit in books.credits.get(terms.id, {}).values():
        paid_for.setdefault(credit["txid"], []).append(credit)
    for charge in seen.charges.values():
        own = paid_for.get(charge["txid"], [])
        expires = instant(charge["expiresAt"])
        fits = {
            credit["end_to_end_id"]
            for credit in own
            if credit["paid_at"] <= expires
            and credit["amount_cents"] == payable(charge, day_of(credit["paid_at"]))
        }
        legal = _charge_ends(charge, terms, fits, books, cancels.get(charge["id"], []), final=final)
        if charge["status"] not in legal:
            yield f"charge {charge['id']} is {charge['status']}, legal: {sorted(legal)}; fits: {sorted(fits)}"
        if charge["status"] in {"PAID", "REFUNDED"}:
            yield from _paid(charge, fits, books.credits[terms.id], out)
        elif charge["endToEndId"] or charge["coreMovementId"] or charge["paidAt"]:
            yield f"charge {charge['id']} is {charge['status']} and yet paid by {charge['endToEndId']}"
        yield from _refunded(terms, charge, seen, books, final=final)


def _charge_ends(
    charge: dict[str, Any],
    terms: Terms,
    fits: set[str],
    books: Books,
    cancels: list[Attempt],
    *,
    final: bool,
) -> set[str]:
    paid = {"PAID", "REFUNDED"}
    if any(attempt.answer is not None and attempt.answer.status == 200 for attempt in cancels):
        return {"CANCELLED"}
    over = books.now > instant(charge["expiresAt"])
    legal = paid if fits else {"EXPIRED"} if over else {"PENDING"}
    if int(charge["amountCents"]) == REFUSED_CHARGE_CENTS:
        legal = {"FAILED"} | ({"EXPIRED"} if over and charge["brCode"] is None else set())
    if (terms.id, charge["txid"]) in books.removed or (cancels and charge["brCode"] is None):
        # Removed there although we were not told, or cancelled while it was being paid.
        legal = legal | {"CANCELLED"} | ({"EXPIRED"} if over else {"PENDING"})
    if not final:
        near = books.now + timedelta(seconds=5) > instant(charge["expiresAt"])
        legal = legal | {"PENDING"} | ({"EXPIRED"} if near else set())
    return legal


def _paid(
    charge: dict[str, Any], fits: set[str], known: dict[str, dict[str, Any]], out: Explained
) -> Iterator[str]:
    id_ = charge["endToEndId"]
    if id_ not in fits:
        yield f"charge {charge['id']} is paid by {id_}, which does not fit"
        return
    item = out.credits.get(id_)
    if item is None or item.id != charge["coreMovementId"]:
        yield f"charge {charge['id']} names the movement {charge['coreMovementId']}"
    credit = known[id_]
    wanted = (
        credit["paid_at"], credit["payer"]["name"], mask(credit["payer"]["document"]),
        credit["payer"]["institution"], credit["payer"]["ispb"],
    )  # fmt: skip
    shown = (
        instant(charge["paidAt"]), charge["payerName"], charge["payerDocument"],
        charge["payerInstitution"], charge["payerInstitutionIspb"],
    )  # fmt: skip
    if shown != wanted:
        yield f"charge {charge['id']}: paid as {shown}, the model has {wanted}"


def _refunded(
    terms: Terms, charge: dict[str, Any], seen: Seen, books: Books, *, final: bool
) -> Iterator[str]:
    refunds = seen.refunds.get(charge["id"], [])
    given = {
        row["return_id"]: row["amount_cents"]
        for row in books.returns.get((terms.id, charge["endToEndId"] or ""), [])
        if row["at"] <= books.now
    }
    done = {
        refund["refundEndToEndId"]: int(refund["amountCents"])
        for refund in refunds
        if refund["status"] == "SUCCEEDED"
    }
    if not done.items() <= given.items() or (final and done != given):
        yield f"charge {charge['id']}: refunded {done}, the provider gave {given}"
    for refund in refunds:
        if refund["status"] == "FAILED" and refund["refundEndToEndId"] in given:
            yield f"refund {refund['id']} is FAILED, but the provider gave it"
        if refund["status"] == "PENDING" and final:
            yield f"refund {refund['id']} is still PENDING"
    total, amount = sum(done.values()), int(charge["amountCents"])
    if total != int(charge["refundedAmountCents"]):
        yield f"charge {charge['id']}: refundedAmountCents {charge['refundedAmountCents']}, refunds {total}"
    if charge["status"] in {"PAID", "REFUNDED"} and (charge["status"] == "REFUNDED") != (total >= amount):
        yield f"charge {charge['id']} is {charge['status']} with {total} of {amount} refunded"


# --- alarms -----------------------------------------------------------------------------------------


def alarms(books: Books, history: History, seen: dict[str, Seen]) -> Iterator[str]:
    """Nobody is called without a reason: a fate that was forced, an order lost a day ago, a Pix that left."""
    aged = {
        id_ for one in seen.values() for id_, payout in one.payouts.items() if payout["status"] == "STUCK"
    }
    returned = {row["return_id"] for rows in books.returns.values() for row in rows}
    expected = aged | _given_back_too_much(books, seen)
    for alarm in books.alarms:
        if alarm["kind"] == "credit_returned" and alarm["subject"] in returned:
            continue  # a Pix that paid no charge went back: a person is told, for no record shows it
        if alarm["subject"] not in history.forces and alarm["subject"] not in expected:
            yield f"alarm {alarm['kind']} of {alarm['subject']}: {alarm['detail']}"


def _given_back_too_much(books: Books, seen: dict[str, Seen]) -> set[str]:
    """Payouts of which the provider gave back more than they were: two buttons pressed at once."""
    return {
        id_
        for account_id, one in seen.items()
        for id_, payout in one.payouts.items()
        if sum(row["amount_cents"] for row in books.returns.get((account_id, payout["endToEndId"]), []))
        > int(payout["amountCents"])
    }
