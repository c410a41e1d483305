CREATE TABLE payouts (
    account_id           text COLLATE "C" NOT NULL,
    payout_id            text COLLATE "C" NOT NULL,
    movement_id          text COLLATE "C" NOT NULL,
    payment_method       text NOT NULL,
    pix_key              text NOT NULL,
    pix_key_type         text,
    qr_code              text,
    qr_code_decode_id    text,
    txid                 text,
    amount_cents         bigint NOT NULL,
    fee_cents            bigint NOT NULL,
    description          text,
    status               text NOT NULL,
    end_to_end_id        text COLLATE "C" NOT NULL,
    reference            text COLLATE "C" NOT NULL,
    provider_code        text,
    refund_end_to_end_id text,
    refunded_cents       bigint NOT NULL DEFAULT 0,
    submitted_at         timestamptz NOT NULL,
    submit_before        timestamptz NOT NULL,
    paid_at              timestamptz,
    last_polled_at       timestamptz,
    next_poll_at         timestamptz,
    poll_attempts        int NOT NULL DEFAULT 0,
    not_found_count      int NOT NULL DEFAULT 0,
    last_error           text,
    provider_response    json,
    provider_status_code text,
    resolved_at          timestamptz,
    external_ref         text COLLATE "C",
    idempotency_key      text COLLATE "C" NOT NULL,
    window_start         timestamptz NOT NULL,
    receiver_account_id  text COLLATE "C",
    beneficiary          json NOT NULL,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, payout_id)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX payouts_end_to_end ON payouts (account_id, end_to_end_id);

CREATE UNIQUE INDEX payouts_external_ref ON payouts (account_id, external_ref) WHERE external_ref IS NOT NULL;

-- The rare endings, so that a list filtered by them is an index walk while payouts stay heap-only.
-- Open payouts are found through their work rows.
CREATE TABLE payout_marks (
    account_id text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    payout_id  text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, status, payout_id)
);

CREATE TABLE spending_windows (
    account_id     text COLLATE "C" NOT NULL,
    window_start   timestamptz NOT NULL,
    consumed_cents bigint NOT NULL,
    PRIMARY KEY (account_id, window_start)
) WITH (fillfactor = 50);

-- A payment between two accounts of the service, on its way from one to the other.
CREATE TABLE handovers (
    account_id          text COLLATE "C" NOT NULL,
    end_to_end_id       text COLLATE "C" NOT NULL,
    receiver_account_id text COLLATE "C" NOT NULL,
    amount_cents        bigint NOT NULL,
    txid                text,
    payer               json NOT NULL,
    paid_at             timestamptz NOT NULL,
    credited_at         timestamptz,
    PRIMARY KEY (account_id, end_to_end_id)
);

-- Prior lookups of Pix keys and decodes of codes, for a while.
CREATE TABLE lookups (
    account_id text COLLATE "C" NOT NULL,
    lookup_id  text COLLATE "C" NOT NULL,
    kind       text NOT NULL,
    subject    text NOT NULL,
    found      json NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, lookup_id)
);

-- DICT's anti-scan bucket of an account holder.
CREATE TABLE dict_buckets (
    entity_id uuid PRIMARY KEY,
    tokens    double precision NOT NULL,
    at        timestamptz NOT NULL
);
