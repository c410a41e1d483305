-- Work that is due: narrow rows, so that the wide ones stay unindexed by changing columns.
-- due_at is business time (the sandbox may move it), leased_until is real time.
CREATE TABLE work (
    account_id   text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    due_at       timestamptz NOT NULL,
    leased_until timestamptz NOT NULL,
    PRIMARY KEY (account_id, kind, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX work_due ON work (kind, due_at);

CREATE TABLE charges (
    account_id           text COLLATE "C" NOT NULL,
    charge_id            text COLLATE "C" NOT NULL,
    variant              text COLLATE "C" NOT NULL,
    status               text COLLATE "C" NOT NULL,
    amount_cents         bigint NOT NULL,
    txid                 text COLLATE "C" NOT NULL,
    provider_qr_id       text NOT NULL,
    br_code              text,
    expires_at           timestamptz NOT NULL,
    due_on               date,
    fine_on              date,
    fine_type            text,
    fine_hundredths      bigint,
    debtor_name          text,
    debtor_document      text,
    debtor_document_type text,
    tag                  text,
    external_ref         text COLLATE "C",
    request              json NOT NULL,
    provider_response    json,
    failure_reason       text,
    end_to_end_id        text,
    movement_id          text COLLATE "C",
    paid_at              timestamptz,
    paid_cents           bigint NOT NULL,
    payer_name           text,
    payer_document       text,
    payer_institution    text,
    payer_ispb           text,
    refund_end_to_end_id text,
    refunded_at          timestamptz,
    refunded_cents       bigint NOT NULL,
    refunding_cents      bigint NOT NULL,
    idempotency_key      text COLLATE "C" NOT NULL,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, charge_id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX charges_txid ON charges (account_id, txid);

CREATE UNIQUE INDEX charges_external_ref ON charges (account_id, external_ref) WHERE external_ref IS NOT NULL;

CREATE INDEX charges_by_kind ON charges (account_id, variant, status, charge_id);

CREATE TABLE charge_refunds (
    account_id      text COLLATE "C" NOT NULL,
    refund_id       text COLLATE "C" NOT NULL,
    charge_id       text COLLATE "C" NOT NULL,
    return_id       text COLLATE "C" NOT NULL,
    end_to_end_id   text NOT NULL,
    amount_cents    bigint NOT NULL,
    status          text NOT NULL,
    description     text,
    failure_reason  text,
    movement_id     text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, refund_id)
);

CREATE INDEX charge_refunds_by_charge ON charge_refunds (account_id, charge_id, refund_id);

CREATE UNIQUE INDEX charge_refunds_return ON charge_refunds (account_id, return_id);

-- What the provider told us, raw, before it is acknowledged; its work row says whether it is done.
CREATE TABLE notifications (
    account_id      text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    kind            text NOT NULL,
    body            bytea NOT NULL,
    received_at     timestamptz NOT NULL,
    PRIMARY KEY (account_id, notification_id)
);
