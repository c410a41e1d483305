-- Who: tenants, the persons and companies in them, their credentials.
CREATE TABLE tenants (
    tenant_id  uuid PRIMARY KEY,
    name       text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE entities (
    entity_id                 uuid PRIMARY KEY,
    tenant_id                 uuid NOT NULL,
    entity_type               text NOT NULL,
    name                      text NOT NULL,
    document                  text NOT NULL,
    email                     text NOT NULL,
    email_confirmation        boolean NOT NULL,
    phone                     text,
    phone_confirmation        boolean NOT NULL,
    password_hash             text NOT NULL,
    status                    text NOT NULL,
    onboarding_step           text NOT NULL,
    onboarding_link           text,
    onboarding_requisition_id bigint,
    has_pin                   boolean NOT NULL,
    created_at                timestamptz NOT NULL,
    updated_at                timestamptz NOT NULL,
    UNIQUE (tenant_id, document)
);

CREATE TABLE api_keys (
    api_key_id  text COLLATE "C" PRIMARY KEY,
    key_hash    bytea NOT NULL UNIQUE,
    preview     text NOT NULL,
    tenant_id   uuid NOT NULL,
    account_ids text[] NOT NULL,
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz
);

-- Accounts: what an operator sets stands apart from what money changes.
CREATE TABLE pix_accounts (
    account_id                  text COLLATE "C" PRIMARY KEY,
    short_code                  text COLLATE "C" NOT NULL UNIQUE,
    tenant_id                   uuid NOT NULL,
    entity_id                   uuid NOT NULL,
    core_account_id             uuid NOT NULL,
    branch                      text NOT NULL,
    account_number              text NOT NULL UNIQUE,
    label                       text NOT NULL,
    enabled                     boolean NOT NULL,
    status                      text NOT NULL,
    pix_in_fee_cents            bigint NOT NULL,
    pix_in_fee_bps              int NOT NULL,
    pix_out_fee_cents           bigint NOT NULL,
    pix_out_fee_bps             int NOT NULL,
    limit_per_transaction_cents bigint NOT NULL,
    limit_daily_cents           bigint NOT NULL,
    limit_night_cents           bigint NOT NULL,
    rate_multiplier             numeric(7, 2) NOT NULL,
    monthly_goal_cents          bigint NOT NULL,
    created_at                  timestamptz NOT NULL,
    updated_at                  timestamptz NOT NULL
);

CREATE INDEX pix_accounts_by_entity ON pix_accounts (entity_id);

CREATE TABLE pix_keys (
    pix_key      text COLLATE "C" PRIMARY KEY,
    pix_key_type text NOT NULL,
    account_id   text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL
);

CREATE INDEX pix_keys_by_account ON pix_keys (account_id);

-- The hot row of an account: every money transaction locks it first. No changing column is
-- indexed and half of each page stays free, so that its updates stay heap-only.
CREATE TABLE balances (
    account_id    text COLLATE "C" PRIMARY KEY,
    balance_cents bigint NOT NULL,
    blocked_cents bigint NOT NULL,
    entry_seq     bigint NOT NULL,
    movement_seq  bigint NOT NULL,
    credits_cents bigint NOT NULL,
    debits_cents  bigint NOT NULL,
    credits_count bigint NOT NULL,
    debits_count  bigint NOT NULL,
    last_at       timestamptz NOT NULL,
    last_hash     bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The ledger: a movement is the fact, its entries are the lines. Running totals and the hash of
-- the chain stand on the movement; only status and metadata ever change.
CREATE TABLE movements (
    account_id          text COLLATE "C" NOT NULL,
    movement_id         text COLLATE "C" NOT NULL,
    seq                 bigint NOT NULL,
    type                text COLLATE "C" NOT NULL,
    source              text COLLATE "C" NOT NULL,
    status              text NOT NULL,
    description         text NOT NULL,
    fee_cents           bigint,
    reverses_id         text COLLATE "C",
    total_credits_cents bigint NOT NULL,
    total_debits_cents  bigint NOT NULL,
    total_credits_count bigint NOT NULL,
    total_debits_count  bigint NOT NULL,
    balance_cents       bigint NOT NULL,
    hash                bytea NOT NULL,
    at                  timestamptz NOT NULL,
    metadata            json NOT NULL,
    PRIMARY KEY (account_id, movement_id)
) WITH (fillfactor = 80);

CREATE INDEX movements_walk ON movements (account_id, at, seq);

CREATE INDEX movements_by_kind ON movements (account_id, type, source, at, seq);

CREATE TABLE entries (
    account_id          text COLLATE "C" NOT NULL,
    movement_id         text COLLATE "C" NOT NULL,
    leg                 smallint NOT NULL,
    entry_id            text COLLATE "C" NOT NULL,
    book                text NOT NULL,
    kind                text NOT NULL,
    amount_cents        bigint NOT NULL,
    seq                 bigint,
    balance_after_cents bigint,
    at                  timestamptz NOT NULL,
    PRIMARY KEY (account_id, movement_id, leg)
);

-- What happened outside, once each, inserted with its effect.
CREATE TABLE facts (
    account_id  text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    movement_id text COLLATE "C",
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, kind, external_id)
);

CREATE TABLE idempotency (
    account_id  text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    record_id   text COLLATE "C" NOT NULL,
    status      smallint,
    answer      bytea,
    sealed      boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, key)
) WITH (fillfactor = 70);

-- Us to the client: written with the money, delivered by the webhooks, read in the inbox.
CREATE TABLE events (
    account_id text COLLATE "C" NOT NULL,
    event_id   text COLLATE "C" NOT NULL,
    event      text COLLATE "C" NOT NULL,
    body       bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

CREATE INDEX events_by_name ON events (account_id, event, event_id);

-- Operators: what was changed and by whom, what needs a person, and what the sandbox was told.
CREATE TABLE audit (
    audit_id text COLLATE "C" PRIMARY KEY,
    actor    text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    before   json,
    after    json,
    at       timestamptz NOT NULL
);

CREATE TABLE alarms (
    account_id  text COLLATE "C" NOT NULL,
    alarm_id    text COLLATE "C" NOT NULL,
    kind        text NOT NULL,
    subject     text NOT NULL,
    detail      text NOT NULL,
    created_at  timestamptz NOT NULL,
    resolved_at timestamptz,
    resolution  text,
    PRIMARY KEY (account_id, alarm_id)
);

CREATE TABLE settings (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);
