"""What must hold between charges, credits and the ledger; `lastro check` runs these beside its proof."""

from lastro.ledger.check import ExtraCheck

PAID_WITHOUT_MOVEMENT = """
SELECT c.account_id, c.charge_id, 'movement_id', 'a posted credit of ' || c.paid_cents,
       COALESCE(c.movement_id, 'none')
FROM charges c
LEFT JOIN movements m ON m.account_id = c.account_id AND m.movement_id = c.movement_id
    AND m.type = 'CREDIT' AND m.source = 'PIX_IN' AND m.status = 'POSTED'
LEFT JOIN entries e ON e.account_id = m.account_id AND e.movement_id = m.movement_id AND e.leg = 0
WHERE c.status IN ('PAID', 'REFUNDED') AND e.amount_cents IS DISTINCT FROM c.paid_cents LIMIT 100"""

UNPAID_WITH_MOVEMENT = """
SELECT account_id, charge_id, 'movement_id', 'none while ' || status, movement_id
FROM charges WHERE status NOT IN ('PAID', 'REFUNDED') AND movement_id IS NOT NULL LIMIT 100"""

PAID_WITHOUT_FACT = """
SELECT c.account_id, c.charge_id, 'end_to_end_id', 'a credit of movement ' || c.movement_id,
       COALESCE(c.end_to_end_id, 'none')
FROM charges c
LEFT JOIN facts f ON f.account_id = c.account_id AND f.kind = 'credit' AND f.external_id = c.end_to_end_id
    AND f.movement_id = c.movement_id
WHERE c.movement_id IS NOT NULL AND f.movement_id IS NULL LIMIT 100"""

REFUND_WITHOUT_MOVEMENT = """
SELECT r.account_id, r.refund_id, 'movement_id', 'a debit of ' || r.amount_cents, r.movement_id
FROM charge_refunds r
LEFT JOIN movements m ON m.account_id = r.account_id AND m.movement_id = r.movement_id
    AND (r.status, m.status) IN (('SUCCEEDED', 'POSTED'), ('FAILED', 'REVERSED'), ('PENDING', 'PENDING'))
LEFT JOIN entries e ON e.account_id = m.account_id AND e.movement_id = m.movement_id AND e.leg = 0
WHERE e.amount_cents IS DISTINCT FROM -r.amount_cents LIMIT 100"""

REFUNDED_OTHERWISE = """
SELECT c.account_id, c.charge_id, 'refunded_cents', COALESCE(sum(r.amount_cents), 0)::text,
       c.refunded_cents::text
FROM charges c
LEFT JOIN charge_refunds r
    ON r.account_id = c.account_id AND r.charge_id = c.charge_id AND r.status = 'SUCCEEDED'
GROUP BY c.account_id, c.charge_id
HAVING c.refunded_cents <> COALESCE(sum(r.amount_cents), 0) LIMIT 100"""

REFUNDING_OTHERWISE = """
SELECT c.account_id, c.charge_id, 'refunding_cents', COALESCE(sum(r.amount_cents), 0)::text,
       c.refunding_cents::text
FROM charges c
LEFT JOIN charge_refunds r
    ON r.account_id = c.account_id AND r.charge_id = c.charge_id AND r.status = 'PENDING'
GROUP BY c.account_id, c.charge_id
HAVING c.refunding_cents <> COALESCE(sum(r.amount_cents), 0) LIMIT 100"""

CREDIT_WITHOUT_FACT = """
SELECT m.account_id, m.movement_id, 'movement_id', 'the fact of a settled credit', 'none'
FROM movements m
LEFT JOIN facts f ON f.account_id = m.account_id AND f.kind = 'credit' AND f.movement_id = m.movement_id
WHERE m.type = 'CREDIT' AND m.source = 'PIX_IN' AND m.reverses_id IS NULL AND f.movement_id IS NULL
LIMIT 100"""

FACT_OF_ANOTHER_CREDIT = """
SELECT f.account_id, f.kind || '/' || f.external_id, 'external_id', m.metadata ->> 'endToEndId', f.external_id
FROM facts f JOIN movements m ON m.account_id = f.account_id AND m.movement_id = f.movement_id
WHERE f.kind = 'credit' AND m.metadata ->> 'endToEndId' IS DISTINCT FROM f.external_id LIMIT 100"""

FACT_OF_ANOTHER_INSTANT = """
SELECT f.account_id, f.kind || '/' || f.external_id, 'at', m.metadata ->> 'date', f.at::text
FROM facts f JOIN movements m ON m.account_id = f.account_id AND m.movement_id = f.movement_id
WHERE f.kind = 'credit' AND (m.metadata ->> 'date')::timestamptz IS DISTINCT FROM f.at LIMIT 100"""

CHECKS = (
    ExtraCheck("charges", "a paid charge names the credit that paid it", PAID_WITHOUT_MOVEMENT),
    ExtraCheck("charges", "an unpaid charge names no credit", UNPAID_WITH_MOVEMENT),
    ExtraCheck("charges", "a paid charge names the fact of its payment", PAID_WITHOUT_FACT),
    ExtraCheck("charge_refunds", "a refund stands as its movement does", REFUND_WITHOUT_MOVEMENT),
    ExtraCheck("charges", "refunds add up", REFUNDED_OTHERWISE),
    ExtraCheck("charges", "refunds on their way add up", REFUNDING_OTHERWISE),
    ExtraCheck("movements", "every credit has its fact", CREDIT_WITHOUT_FACT),
    ExtraCheck("facts", "a credit's fact carries its end-to-end id", FACT_OF_ANOTHER_CREDIT),
    ExtraCheck("facts", "a credit's fact has its instant", FACT_OF_ANOTHER_INSTANT),
)
