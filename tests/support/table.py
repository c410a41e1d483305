"""The route table as tests walk it, and a request that fits each row."""

from dataclasses import dataclass
from typing import Any

from lastro.api.auth import LoginDesk
from lastro.api.openapi_examples import BODIES
from lastro.api.routes import Auth, Route, Select
from lastro.main import all_routes
from tests.support.service import Service, TestAccount

# The table needs neither a login desk nor password threads to be read.
ROUTES: list[Route] = [route for route in all_routes(LoginDesk(None, None, None), None) if route.documented]
API_ROUTES = [route for route in ROUTES if route.auth is Auth.API_KEY]
ADMIN_ROUTES = [route for route in ROUTES if route.auth is Auth.ADMIN]
NO_SUCH_ID = "c" + "0" * 24
NO_SUCH_END_TO_END = "E" + "0" * 31


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


@dataclass
class Records:
    """One record of each kind that a path can name, all of one account."""

    account: TestAccount
    charge: str = NO_SUCH_ID
    payout: str = NO_SUCH_ID
    movement: str = NO_SUCH_ID
    webhook: str = NO_SUCH_ID
    delivery: str = NO_SUCH_ID
    reference: str = "no-such-reference"
    end_to_end_id: str = NO_SUCH_END_TO_END


async def make_records(service: Service, account: TestAccount) -> Records:
    """Make a paid charge, a settled payout and a webhook endpoint with a delivery."""
    key, reference = account.api_key, "matrix-1"
    charge = await service.post(
        "/v1/charges", key, {"variant": "simple", "amountCents": "500", "externalRef": reference}
    )
    await service.post(f"/sandbox/charges/{charge.body['id']}/pay", key)
    sent = {
        "pixKey": "ok@sandbox.test",
        "pixKeyType": "EMAIL",
        "amountCents": "100",
        "externalRef": reference,
    }
    payout = (await service.post("/v1/payouts", key, sent)).body["payoutId"]

    async def settled() -> Any:
        found = (await service.get(f"/v1/payouts/{payout}", key)).body
        return found if found["status"] == "SUCCEEDED" else None

    record = await service.until(settled)
    hooks = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    # A port on which nobody listens: the delivery stays, and no test waits for it.
    hook = await service.post(hooks, key, {"url": "http://127.0.0.1:9/", "events": ["pix.charge.paid"]})
    tried = await service.post(f"{hooks}/{hook.body['id']}/test", key, {"event": "pix.charge.paid"})
    return Records(
        account, charge.body["id"], payout, record["movementId"], hook.body["id"], tried.body["id"],
        reference, record["endToEndId"],
    )  # fmt: skip


def path_of(route: Route, records: Records) -> str:
    """Fill a route's path; a parameter that nobody thought of fails here."""
    owner = records.account.pix_account_id
    values = {
        "accountId": owner,
        "webhookId": records.webhook,
        "deliveryId": records.delivery,
        "externalRef": records.reference,
        "reference": records.reference,
        "endToEndId": records.end_to_end_id,
    }
    for part, record in (
        ("/charges/", records.charge),
        ("/payouts/", records.payout),
        ("/movements/", records.movement),
    ):
        if part in route.path:
            values["id"] = record
    if route.path.startswith("/v1/pix-accounts/{id}"):
        values["id"] = owner
    path = route.path.format(**values)
    return f"{path}?format=csv" if route.path.endswith("/export") else path


def body_of(route: Route, records: Records) -> dict[str, Any] | None:
    """Return a body that the route takes."""
    if route.method not in {"POST", "PATCH"}:
        return None
    written = BODIES.get(route.body.__name__) if route.body else None
    body = dict(next(iter(written.values()))) if written else {}
    if route.select is Select.BODY:
        body["pixAccountId"] = records.account.pix_account_id
    return body


def records_named(route: Route) -> list[str]:
    """Return the path's parameters that name records, not the account."""
    return [name for name in route.path_names if name != route.account_param]
