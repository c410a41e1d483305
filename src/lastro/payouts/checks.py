"""What must hold between payouts, handovers, windows and the ledger, for `lastro check`.

Each holds in every committed state, so the checks may run beside the service.
"""

from lastro.ledger.check import ExtraCheck

MOVEMENT_OTHERWISE = """
SELECT p.account_id, p.payout_id, 'movement_id', 'a debit that fits ' || p.status,
       p.movement_id || ' ' || COALESCE(m.status, 'none')
FROM payouts p
LEFT JOIN movements m ON m.account_id = p.account_id AND m.movement_id = p.movement_id
    AND m.type = 'DEBIT' AND m.source = 'PIX_OUT'
WHERE m.status IS DISTINCT FROM CASE
    WHEN p.status IN ('SUCCEEDED', 'REFUNDED') THEN 'POSTED'
    WHEN p.status IN ('FAILED', 'CANCELLED') THEN 'REVERSED'
    ELSE 'PENDING' END
LIMIT 100"""

AMOUNT_OTHERWISE = """
SELECT p.account_id, p.payout_id, 'amount_cents', (p.amount_cents + p.fee_cents)::text,
       (-sum(e.amount_cents))::text
FROM payouts p
JOIN entries e ON e.account_id = p.account_id AND e.movement_id = p.movement_id AND e.book = 'customer'
GROUP BY p.account_id, p.payout_id
HAVING -sum(e.amount_cents) <> p.amount_cents + p.fee_cents LIMIT 100"""

# What came back of a payout: its returns while it stands, all of it with the fee when it was refused.
GIVEN_BACK_OTHERWISE = """
SELECT p.account_id, p.payout_id, 'refunded_cents',
       CASE WHEN p.status IN ('FAILED', 'CANCELLED')
            THEN p.amount_cents + p.fee_cents ELSE p.refunded_cents END::text,
       COALESCE(b.cents, 0)::text
FROM payouts p
LEFT JOIN (
    SELECT r.account_id, r.reverses_id, sum(e.amount_cents) AS cents
    FROM movements r
    JOIN entries e ON e.account_id = r.account_id AND e.movement_id = r.movement_id AND e.book = 'customer'
    WHERE r.reverses_id IS NOT NULL AND r.type = 'CREDIT' AND r.source = 'PIX_OUT'
    GROUP BY r.account_id, r.reverses_id
) b ON b.account_id = p.account_id AND b.reverses_id = p.movement_id
WHERE COALESCE(b.cents, 0) <> CASE
    WHEN p.status IN ('FAILED', 'CANCELLED') THEN p.amount_cents + p.fee_cents ELSE p.refunded_cents END
LIMIT 100"""

REFUNDED_OTHERWISE = """
SELECT account_id, payout_id, 'status', 'REFUNDED exactly when all came back', status
FROM payouts
WHERE status IN ('SUCCEEDED', 'REFUNDED') AND (status = 'REFUNDED') <> (refunded_cents >= amount_cents)
   OR status NOT IN ('SUCCEEDED', 'REFUNDED') AND refunded_cents <> 0
LIMIT 100"""

FACT_OTHERWISE = """
SELECT p.account_id, p.payout_id, 'end_to_end_id', 'the fact of its ending', p.end_to_end_id
FROM payouts p
LEFT JOIN facts s ON s.account_id = p.account_id AND s.kind = 'payout_settled'
    AND s.external_id = p.end_to_end_id AND s.movement_id = p.movement_id
LEFT JOIN facts r ON r.account_id = p.account_id AND r.kind = 'payout_refused'
    AND r.external_id = p.end_to_end_id
WHERE (s.movement_id IS NOT NULL) <> (p.status IN ('SUCCEEDED', 'REFUNDED'))
   OR p.status IN ('FAILED', 'CANCELLED') AND r.movement_id IS NULL
   OR r.movement_id IS NOT NULL AND p.status IN ('PENDING', 'PROCESSING', 'SUBMITTED_UNKNOWN', 'STUCK')
LIMIT 100"""

ONE_FOR_EACH_KEY = """
SELECT account_id, min(payout_id), 'idempotency_key', 'one payout', count(*)::text
FROM payouts GROUP BY account_id, idempotency_key HAVING count(*) > 1 LIMIT 100"""

DEBIT_WITHOUT_PAYOUT = """
SELECT m.account_id, m.movement_id, 'movement_id', 'a payout', 'none'
FROM movements m
LEFT JOIN payouts p ON p.account_id = m.account_id AND p.movement_id = m.movement_id
WHERE m.type = 'DEBIT' AND m.source = 'PIX_OUT' AND m.status <> 'REVERSED' AND p.payout_id IS NULL
LIMIT 100"""

MARK_OTHERWISE = """
SELECT COALESCE(p.account_id, k.account_id), COALESCE(p.payout_id, k.payout_id), 'status',
       COALESCE(p.status, 'none'), COALESCE(k.status, 'none')
FROM (SELECT account_id, payout_id, status FROM payouts WHERE status IN ('FAILED', 'CANCELLED', 'REFUNDED')) p
FULL JOIN payout_marks k ON k.account_id = p.account_id AND k.payout_id = p.payout_id AND k.status = p.status
WHERE p.payout_id IS NULL OR k.payout_id IS NULL LIMIT 100"""

WORK_OTHERWISE = """
SELECT COALESCE(p.account_id, w.account_id), COALESCE(p.payout_id, w.id), 'status',
       COALESCE(p.status, 'no open payout'), CASE WHEN w.id IS NULL THEN 'no work' ELSE 'work' END
FROM (SELECT account_id, payout_id, status FROM payouts
      WHERE status IN ('PENDING', 'PROCESSING', 'SUBMITTED_UNKNOWN', 'STUCK')) p
FULL JOIN (SELECT account_id, id FROM work WHERE kind = 'payout') w
    ON w.account_id = p.account_id AND w.id = p.payout_id
WHERE p.payout_id IS NULL OR w.id IS NULL LIMIT 100"""

WINDOW_OTHERWISE = """
SELECT COALESCE(p.account_id, w.account_id), COALESCE(p.window_start, w.window_start)::text, 'consumed_cents',
       COALESCE(p.cents, 0)::text, COALESCE(w.consumed_cents, 0)::text
FROM (SELECT account_id, window_start, sum(amount_cents) AS cents FROM payouts
      WHERE status NOT IN ('FAILED', 'CANCELLED') GROUP BY account_id, window_start) p
FULL JOIN spending_windows w ON w.account_id = p.account_id AND w.window_start = p.window_start
WHERE COALESCE(p.cents, 0) <> COALESCE(w.consumed_cents, 0) LIMIT 100"""

HANDOVER_OTHERWISE = """
SELECT h.account_id, h.end_to_end_id, 'amount_cents', COALESCE(p.amount_cents::text, 'a settled payout'),
       h.amount_cents::text
FROM handovers h
LEFT JOIN payouts p ON p.account_id = h.account_id AND p.end_to_end_id = h.end_to_end_id
    AND p.status IN ('SUCCEEDED', 'REFUNDED') AND p.receiver_account_id = h.receiver_account_id
WHERE p.amount_cents IS DISTINCT FROM h.amount_cents LIMIT 100"""

# In transit: the receiver's credit is still to come, and somebody is due to book it.
HANDOVER_FORGOTTEN = """
SELECT h.account_id, h.end_to_end_id, 'credited_at', 'work that credits ' || h.amount_cents, 'none'
FROM handovers h
LEFT JOIN work w ON w.account_id = h.account_id AND w.kind = 'handover' AND w.id = h.end_to_end_id
WHERE h.credited_at IS NULL AND w.id IS NULL LIMIT 100"""

HANDOVER_UNCREDITED = """
SELECT h.account_id, h.end_to_end_id, 'credited_at', 'a credit of ' || h.amount_cents || ' at the receiver',
       COALESCE(e.amount_cents::text, 'none')
FROM handovers h
LEFT JOIN facts f ON f.account_id = h.receiver_account_id AND f.kind = 'credit'
    AND f.external_id = h.end_to_end_id
LEFT JOIN entries e ON e.account_id = f.account_id AND e.movement_id = f.movement_id AND e.leg = 0
WHERE h.credited_at IS NOT NULL AND e.amount_cents IS DISTINCT FROM h.amount_cents LIMIT 100"""

# With the sandbox as provider, a settled payment to one of our own accounts is always handed over.
HANDOVER_MISSING = """
SELECT p.account_id, p.payout_id, 'receiver_account_id', 'a handover', 'none'
FROM payouts p
JOIN sandbox_submissions s ON s.account_id = p.account_id AND s.reference = p.reference
LEFT JOIN handovers h ON h.account_id = p.account_id AND h.end_to_end_id = p.end_to_end_id
WHERE p.receiver_account_id IS NOT NULL AND p.status IN ('SUCCEEDED', 'REFUNDED') AND h.end_to_end_id IS NULL
LIMIT 100"""

SUBMITTED_TWICE = """
SELECT account_id, reference, 'reference', 'one submission', count(*)::text
FROM sandbox_submissions GROUP BY account_id, reference HAVING count(*) > 1 LIMIT 100"""

SUBMITTED_OTHERWISE = """
SELECT s.account_id, s.reference, 'amount_cents', COALESCE(p.amount_cents::text, 'a payout'),
       s.amount_cents::text
FROM sandbox_submissions s
LEFT JOIN payouts p ON p.account_id = s.account_id AND p.end_to_end_id = s.end_to_end_id
    AND p.reference = s.reference
WHERE p.amount_cents IS DISTINCT FROM s.amount_cents LIMIT 100"""

CHECKS = (
    ExtraCheck("payouts", "a payout's movement stands as the payout does", MOVEMENT_OTHERWISE),
    ExtraCheck("payouts", "amount and fee are what the movement took", AMOUNT_OTHERWISE),
    ExtraCheck("payouts", "what came back is what was credited", GIVEN_BACK_OTHERWISE),
    ExtraCheck("payouts", "REFUNDED means that all came back", REFUNDED_OTHERWISE),
    ExtraCheck("payouts", "a payout's ending has its fact", FACT_OTHERWISE),
    ExtraCheck("payouts", "one Idempotency-Key, one payout", ONE_FOR_EACH_KEY),
    ExtraCheck("movements", "every standing PIX_OUT debit belongs to a payout", DEBIT_WITHOUT_PAYOUT),
    ExtraCheck("payout_marks", "marks fit the statuses", MARK_OTHERWISE),
    ExtraCheck("work", "open payouts, and only they, are due for a check", WORK_OTHERWISE),
    ExtraCheck("spending_windows", "a window holds the amounts of its payouts", WINDOW_OTHERWISE),
    ExtraCheck("handovers", "a handover has its settled payout", HANDOVER_OTHERWISE),
    ExtraCheck("handovers", "what is in transit will arrive", HANDOVER_FORGOTTEN),
    ExtraCheck("handovers", "what was handed over was credited", HANDOVER_UNCREDITED),
    ExtraCheck("payouts", "a settled payment between our accounts is handed over", HANDOVER_MISSING),
    ExtraCheck("sandbox_submissions", "no order is submitted twice", SUBMITTED_TWICE),
    ExtraCheck("sandbox_submissions", "what was submitted is a payout of ours", SUBMITTED_OTHERWISE),
)
