"""The outbox: events written in the transaction that changes the money."""
