-- The simulated provider's own books: what was registered, paid and submitted there is its fact, not ours.
CREATE TABLE sandbox_charges (
    account_id      text COLLATE "C" NOT NULL,
    txid            text COLLATE "C" NOT NULL,
    amount_cents    bigint NOT NULL,
    due_on          date,
    fine_on         date,
    fine_type       text,
    fine_hundredths bigint,
    expires_at      timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    removed_at      timestamptz,
    PRIMARY KEY (account_id, txid)
);

CREATE TABLE sandbox_credits (
    account_id    text COLLATE "C" NOT NULL,
    end_to_end_id text COLLATE "C" NOT NULL,
    txid          text COLLATE "C",
    amount_cents  bigint NOT NULL,
    payer         json NOT NULL,
    paid_at       timestamptz NOT NULL,
    listed_at     timestamptz NOT NULL,
    PRIMARY KEY (account_id, end_to_end_id)
);

CREATE INDEX sandbox_credits_listed ON sandbox_credits (listed_at);

CREATE INDEX sandbox_credits_end_to_end ON sandbox_credits (end_to_end_id);

CREATE INDEX sandbox_credits_txid ON sandbox_credits (account_id, txid);

-- Append-only: a second row of one order is the alarm that fails any test.
CREATE TABLE sandbox_submissions (
    account_id    text COLLATE "C" NOT NULL,
    reference     text COLLATE "C" NOT NULL,
    submission_id text COLLATE "C" NOT NULL,
    end_to_end_id text COLLATE "C" NOT NULL,
    amount_cents  bigint NOT NULL,
    pix_key       text NOT NULL,
    arrived       boolean NOT NULL,
    submitted_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, reference, submission_id)
);

CREATE INDEX sandbox_submissions_at ON sandbox_submissions (submitted_at);

CREATE INDEX sandbox_submissions_end_to_end ON sandbox_submissions (end_to_end_id);

CREATE TABLE sandbox_forced (
    account_id text COLLATE "C" NOT NULL,
    reference  text COLLATE "C" NOT NULL,
    status     text NOT NULL,
    code       text,
    at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, reference)
);

-- Money on its way back: of a payout to us, or of a received Pix from us.
CREATE TABLE sandbox_returns (
    account_id   text COLLATE "C" NOT NULL,
    return_id    text COLLATE "C" NOT NULL,
    original     text COLLATE "C" NOT NULL,
    amount_cents bigint NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, return_id)
);

CREATE INDEX sandbox_returns_original ON sandbox_returns (account_id, original);
