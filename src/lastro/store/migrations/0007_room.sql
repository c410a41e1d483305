-- Room for what is written twice or more: a payout is accepted and settles, its movement is posted, its key
-- gets its answer. A new version that fits beside the old one leaves every index alone.
ALTER TABLE payouts SET (fillfactor = 45);

ALTER TABLE movements SET (fillfactor = 50);

ALTER TABLE idempotency SET (fillfactor = 35);
