"""Words of the OpenAPI document: the introduction, the tags, and what single fields mean."""

INTRODUCTION = """Pix accounts over a double-entry ledger: charges, payouts, statement, webhooks and login.

**Money** is a decimal integer string in cents (`"1050"` is R$ 10.50); the login alone answers in reais.
**Instants** are ISO-8601, with `-03:00` in records and `Z` in webhook bodies.
**Lists** are newest first; pass `nextCursor` back as `cursor` until it is null.

**Every POST under `/v1` is idempotent.** Send an `Idempotency-Key` of 8 to 64 characters. The same key with
the same request gets the first answer back, byte for byte, with `Idempotent-Replayed: true`; with another
request, 409. After a time-out or a 5xx, retry with the same key: nothing happens twice.

**Checks come in a fixed order**: credential, account, call allowance, idempotency key, JSON, replay, body,
account enabled, existence, state, limits, funds. Unknown fields and parameters are refused.

**Errors** have one form, `{"error": {"code", "message", "requestId", "param"?, "details"?}}`.
Codes are stable. Other methods of a path that exists get 405 and `Allow`; all else that is unknown is 404.
"""

TAGS: dict[str, str] = {
    "Account": "The Pix account: its data, fees, payment limits, call allowance and balance.",
    "Charges": "Receive money: create a charge, show its QR code, follow it, cancel it, refund it.",
    "Payouts": "Send money by Pix key or QR code, and follow each payout to its end.",
    "Lookups": "Who stands behind a Pix key or a QR code, before money is sent.",
    "Statement": "Movements and entries of the ledger, their sums, files, receipts; the inbox of events.",
    "Webhooks": "Endpoints that receive events, their deliveries and their secrets.",
    "Login": "Log a person or company in by document and password, within a tenant.",
    "Admin": "What operators do: tenants, entities, accounts, keys, audit.",
    "Sandbox": "Play the other side: pay, settle, reject, move the clock. Absent in live mode.",
    "System": "Health, metrics and this description.",
}

FIELDS: dict[str, str] = {
    "amountCents": "Amount in cents.",
    "variant": "`simple`, with a `debtor`, or with a due date (`cobv`).",
    "tag": "Free text, given back in the charge's events.",
    "externalRef": "Your own reference, unique within the account.",
    "expirationDate": "UTC instant ending in `Z`, at most 365 days ahead; 24 hours from now when absent.",
    "debtorDocument": "CPF or CNPJ; check digits are verified.",
    "debtorTypeDocument": "Must agree with the document when given.",
    "NewCharge.dueDate": "Day or instant, today or later; moves to the next business day. `cobv` only.",
    "NewCharge.fineDate": "First day of the fine; the day after the due date when absent. `cobv` only.",
    "typeFine": "How a late charge grows.",
    "fine": "Reais (`VALUE`) or percent below 100 (`PERCENT`), two decimals at most.",
    "validAfterDueDays": "How many days after its due date the charge can still be paid; 30 when absent.",
    "brCode": "The code to copy and paste.",
    "imageBase64": "PNG of the code; empty for a charge without one.",
    "imageUrl": "Public address of the PNG.",
    "txid": "Transaction id within Pix.",
    "endToEndId": "Settlement id within Pix, 32 characters.",
    "refundEndToEndId": "Id of the refund within Pix.",
    "refundedAmountCents": "What was refunded so far; `0` when nothing was.",
    "coreMovementId": "The movement of the ledger, once paid.",
    "depositSnapshot": "The original request and the provider's reply; for debugging only.",
    "pixKey": "The destination's Pix key.",
    "pixKeyType": "What kind of Pix key it is.",
    "dictLookupId": "Id of an earlier lookup of this Pix key, at most 15 minutes old.",
    "qrCodeDecodeId": "Id of an earlier decode of this code, at most 15 minutes old.",
    "pixCopyAndPaste": "The BR Code.",
    "NewDecode.paymentDate": "The day on which the code shall be paid; today when absent.",
    "PayoutResult.kind": "`submitted_unknown`: the provider has not answered; the service will find out.",
    "providerTransactionId": "The reference under which the provider knows the payout.",
    "providerStatusCode": "The provider's code when it rejected the payout.",
    "lastError": "Why the last submission failed.",
    "nextCursor": "Pass it back as `cursor`; null on the last page.",
    "cursor": "`nextCursor` of the page before, with the same filters.",
    "limit": "Rows of a page; charges and statement give 100 at most.",
    "from": "First day, in Sao Paulo; included.",
    "to": "Last day, in Sao Paulo; included.",
    "IntervalQuery.from": "First day, or an instant with its offset; included.",
    "IntervalQuery.to": "Last day, included; or an instant with its offset, left out.",
    "BalanceQuery.at": "A day (its end) or an instant with its offset, not in the future; now when absent.",
    "pixAccountId": "The Pix account.",
    "balanceAfter": "Balance after this entry, in cents.",
    "feeAmount": "Fee in cents, null when there was none.",
    "reversesMovementId": "The movement that this one reverses or gives back.",
    "spendableNowCents": "What can be sent now without going over the window's limit.",
    "events": "Event names, each once.",
    "authToken": "Comes back with every delivery as `Authorization: Bearer`.",
    "authTokenPreview": "The token's last four characters.",
    "signingSecret": "Signs deliveries (`webhook-signature`); shown this once.",
    "url": "An `https` address; in sandbox mode also `http` on a loopback address.",
    "maxPerMinute": "Calls that any 60 seconds take.",
    "isBypass": "True: no call limit.",
    "document": "CPF or CNPJ without punctuation.",
    "NewEntity.document": "CPF or CNPJ; punctuation is taken off.",
    "apiKey": "The API key; shown this once.",
    "rateLimitMultiplier": "Scales every call limit: 0 (none), or 0.01 to 100 with two decimals.",
    "notify": "False: the notification was lost; the provider lists the item only after 60 s.",
    "advanceSeconds": "How far business time goes ahead.",
    "code": "The rejection's code, such as `AB03`.",
    "balance": "Balance in cents.",
    "AccountAnswer.balance": "Balance in reais.",
    "monthlyGoal": "Spending goal of the month, in reais.",
    "onboardingStep": "`DONE` when completed.",
}
