"""What operators watch of the webhooks."""

from prometheus_client import Counter, Gauge, Histogram

DUE = Gauge("lastro_webhook_due", "Deliveries that are due and not yet sent (counted up to 100000)")
OLDEST_DUE_AGE = Gauge(
    "lastro_webhook_oldest_due_age_seconds", "How long the longest-due delivery has been due"
)
ENDPOINTS_DRAINING = Gauge("lastro_webhook_endpoints_draining", "Endpoints that this process is sending to")
ATTEMPTS = Counter("lastro_webhook_attempts", "Attempts by outcome", ["outcome"])
ATTEMPT_SECONDS = Histogram(
    "lastro_webhook_attempt_seconds",
    "How long one attempt took",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
DELIVERY_SECONDS = Histogram(
    "lastro_webhook_delivery_seconds",
    "From the event to its successful delivery",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 43_200, 259_200),
)
