-- What gave a movement back: few rows, and the column never changes, so updates of movements stay heap-only.
CREATE INDEX movements_by_reversed ON movements (account_id, reverses_id) WHERE reverses_id IS NOT NULL;

-- Which charge a credit paid. The update that sets it changes the indexed status anyway.
CREATE INDEX charges_by_movement ON charges (account_id, movement_id) WHERE movement_id IS NOT NULL;
