-- Where events go. Tokens and secrets are sealed; a removed endpoint keeps its row until its log is gone.
CREATE TABLE webhook_endpoints (
    account_id        text COLLATE "C" NOT NULL,
    endpoint_id       text COLLATE "C" NOT NULL,
    url               text NOT NULL,
    events            text[] NOT NULL,
    enabled           boolean NOT NULL,
    token_sealed      bytea,
    token_preview     text,
    secret_sealed     bytea NOT NULL,
    old_secret_sealed bytea,
    old_secret_until  timestamptz,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    deleted_at        timestamptz,
    PRIMARY KEY (account_id, endpoint_id)
);

-- Who drains an endpoint, and whether it may be tried: one narrow hot row each, no changing column indexed.
-- leased_until is real time, blocked_until is business time (breaker, Retry-After, disabled).
CREATE TABLE webhook_leases (
    account_id    text COLLATE "C" NOT NULL,
    endpoint_id   text COLLATE "C" NOT NULL,
    token         text COLLATE "C" NOT NULL,
    leased_until  timestamptz NOT NULL,
    blocked_until timestamptz NOT NULL,
    failures      int NOT NULL,
    parked        boolean NOT NULL,
    PRIMARY KEY (account_id, endpoint_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- One event owed to one endpoint. Its bytes are the event's; only a test, which is no event, brings its own.
CREATE TABLE webhook_deliveries (
    account_id       text COLLATE "C" NOT NULL,
    endpoint_id      text COLLATE "C" NOT NULL,
    delivery_id      text COLLATE "C" NOT NULL,
    event_id         text COLLATE "C" NOT NULL,
    event            text NOT NULL,
    status           text NOT NULL,
    attempts         int NOT NULL,
    step             smallint NOT NULL,
    next_attempt_at  timestamptz,
    last_status_code smallint,
    test_body        bytea,
    created_at       timestamptz NOT NULL,
    delivered_at     timestamptz,
    PRIMARY KEY (account_id, endpoint_id, delivery_id)
) WITH (fillfactor = 80);

CREATE TABLE webhook_attempts (
    account_id  text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    delivery_id text COLLATE "C" NOT NULL,
    number      int NOT NULL,
    outcome     text NOT NULL,
    status_code smallint,
    error       text,
    duration_ms int NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, endpoint_id, delivery_id, number)
);

-- What is still to be sent, and when (business time); exhausted deliveries are parked far in the future.
CREATE TABLE webhook_queue (
    account_id  text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    due_at      timestamptz NOT NULL,
    delivery_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, endpoint_id, due_at, delivery_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX webhook_queue_due ON webhook_queue (due_at);
