-- The rival in the database: one payout as one PL/pgSQL call, one commit, on tables that are copies of the
-- service's own (columns, indexes, fill factors). It does everything that the service's intent and outcome
-- do to the account: replay of a known key, enabled, limits, fee, funds, the running balance and totals, the
-- hash chain, the money window, the work row, the stored answer. Rows are written once, in the state that
-- they have when the client is answered. The provider's own log is the provider's: it is not written here.
CREATE SCHEMA bench;

DO $$
DECLARE
    name text;
    options text;
BEGIN
    FOREACH name IN ARRAY ARRAY['pix_accounts', 'balances', 'idempotency', 'payouts', 'movements', 'entries',
                                'work', 'spending_windows']
    LOOP
        EXECUTE format('CREATE TABLE bench.%I (LIKE public.%I INCLUDING ALL)', name, name);
        SELECT array_to_string(reloptions, ', ') INTO options FROM pg_class
        WHERE oid = format('public.%I', name)::regclass;
        IF options IS NOT NULL THEN
            EXECUTE format('ALTER TABLE bench.%I SET (%s)', name, options);
        END IF;
    END LOOP;
END $$;

-- pgbench draws numbers; the service finds the account behind an API key in its memory.
CREATE TABLE bench.numbers (number int PRIMARY KEY, account_id text COLLATE "C" NOT NULL);

CREATE FUNCTION bench.new_id(at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT 'c' || lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 11, '0')
           || substr(replace(gen_random_uuid()::text, '-', ''), 1, 13)
$$;

CREATE FUNCTION bench.payout(chosen int) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    asked_cents CONSTANT bigint := 100;
    pix_key CONSTANT text := 'cliente' || (random() * 996)::int || '@exemplo.com.br';
    asked CONSTANT text := '{"amountCents":"100","description":"Repasse da semana","pixKey":"' || pix_key
                           || '","pixKeyType":"EMAIL"}';
    idempotency_key CONSTANT text := gen_random_uuid();
    now_at CONSTANT timestamptz := date_trunc('milliseconds', clock_timestamp());
    day_at CONSTANT timestamptz := date_trunc('day', now_at);
    payout_id CONSTANT text := bench.new_id(now_at);
    movement_id CONSTANT text := bench.new_id(now_at);
    whose text;
    held bench.balances;
    terms bench.pix_accounts;
    known bench.idempotency;
    fee_cents bigint;
    used_cents bigint;
    booked_at timestamptz;
    link bytea;
    answer bytea;
BEGIN
    SELECT account_id INTO whose FROM bench.numbers WHERE number = chosen;
    SELECT * INTO held FROM bench.balances b WHERE b.account_id = whose FOR NO KEY UPDATE;
    SELECT * INTO known FROM bench.idempotency i WHERE i.account_id = whose AND i.key = idempotency_key;
    IF FOUND THEN
        RETURN known.answer;
    END IF;
    SELECT * INTO terms FROM bench.pix_accounts p WHERE p.account_id = whose;
    SELECT w.consumed_cents INTO used_cents FROM bench.spending_windows w
    WHERE w.account_id = whose AND w.window_start = day_at;
    used_cents := COALESCE(used_cents, 0) + asked_cents;
    fee_cents := terms.pix_out_fee_cents + (asked_cents * terms.pix_out_fee_bps + 5000) / 10000;
    IF NOT terms.enabled OR asked_cents > terms.limit_per_transaction_cents
        OR used_cents > terms.limit_daily_cents
        OR asked_cents + fee_cents > held.balance_cents - held.blocked_cents THEN
        RAISE EXCEPTION 'refused';
    END IF;

    held.balance_cents := held.balance_cents - asked_cents;
    held.entry_seq := held.entry_seq + 1;
    held.movement_seq := held.movement_seq + 1;
    held.debits_cents := held.debits_cents + asked_cents;
    held.debits_count := held.debits_count + 1;
    booked_at := GREATEST(now_at, held.last_at);
    link := sha256(held.last_hash || convert_to(concat_ws('|', whose, movement_id, held.movement_seq, 'DEBIT',
        'PIX_OUT', NULL, NULL, held.credits_cents, held.debits_cents, held.credits_count, held.debits_count,
        held.balance_cents, extract(epoch FROM booked_at), '0', movement_id, 'customer', 'PRIMARY',
        -asked_cents, held.entry_seq, held.balance_cents, '1', movement_id, 'clearing', 'PRIMARY',
        asked_cents), 'UTF8'));
    answer := convert_to('{"kind":"submitted","payoutId":"' || payout_id || '","status":"PROCESSING"}', 'UTF8');

    INSERT INTO bench.idempotency VALUES (whose, idempotency_key, sha256(convert_to(asked, 'UTF8')), payout_id,
        201, answer, false, now_at);
    INSERT INTO bench.payouts (account_id, payout_id, movement_id, payment_method, pix_key, pix_key_type,
        amount_cents, fee_cents, description, status, end_to_end_id, reference, provider_code, refunded_cents,
        submitted_at, submit_before, next_poll_at, poll_attempts, not_found_count, idempotency_key,
        window_start, beneficiary, created_at, updated_at)
    VALUES (whose, payout_id, movement_id, 'PIX_KEY', pix_key, 'EMAIL', asked_cents, fee_cents,
        'Repasse da semana', 'PROCESSING', 'E99999999' || to_char(now_at, 'YYYYMMDDHH24MI') || right(payout_id, 11),
        md5(idempotency_key), right(payout_id, 25), 0, now_at, now_at + interval '5 s', now_at + interval '2.3 s', 0, 0,
        idempotency_key, day_at,
        '{"name":"Gabriela Ferreira","document":"12345678909","ispb":"60701190","institution":"Itau Unibanco S.A.","branch":"0001","account":"1234567","account_type":"CACC"}',
        now_at, now_at);
    INSERT INTO bench.movements VALUES (whose, movement_id, held.movement_seq, 'DEBIT', 'PIX_OUT', 'PENDING',
        'Pix sent to Gabriela Ferreira', NULL, NULL, held.credits_cents, held.debits_cents, held.credits_count,
        held.debits_count, held.balance_cents, link, booked_at,
        ('{"date":"2026-07-01T12:00:00.000Z","payer":{"branch":"0001","account":"12345678"},"endToEndId":null,'
        || '"beneficiary":{"pixKey":"' || pix_key || '","pixKeyType":"EMAIL","name":"Gabriela Ferreira",'
        || '"document":"***.456.789-**","branch":"0001","account":"1234567","ispb":"60701190",'
        || '"accountType":"CACC","institution":"Itau Unibanco S.A."},"pixAccountId":"' || whose
        || '","paymentDate":null}')::json);
    INSERT INTO bench.entries VALUES
        (whose, movement_id, 0, left(movement_id, 23) || '00', 'customer', 'PRIMARY', -asked_cents,
         held.entry_seq, held.balance_cents, booked_at),
        (whose, movement_id, 1, left(movement_id, 23) || '01', 'clearing', 'PRIMARY', asked_cents, NULL, NULL,
         booked_at);
    UPDATE bench.balances b SET balance_cents = held.balance_cents, entry_seq = held.entry_seq,
        movement_seq = held.movement_seq, debits_cents = held.debits_cents, debits_count = held.debits_count,
        last_at = booked_at, last_hash = link
    WHERE b.account_id = whose;
    INSERT INTO bench.spending_windows VALUES (whose, day_at, used_cents)
    ON CONFLICT (account_id, window_start) DO UPDATE SET consumed_cents = EXCLUDED.consumed_cents;
    INSERT INTO bench.work VALUES (whose, 'payout', payout_id, now_at + interval '2.3 s', '2000-01-01');
    RETURN answer;
END $$;
