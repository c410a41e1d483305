"""The console: server-rendered pages over the same actions as the API."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from lastro.api.call import Answer, Call
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.console import (
    api_keys,
    assets,
    charges,
    live,
    movements,
    overview,
    payouts,
    sandbox,
    statement,
    strays,
    webhooks,
)
from lastro.console import login as entrance
from lastro.console.door import Handler, visited
from lastro.identity.login import LoginDesk

RATE = Rate("console", 3_000)
ACCOUNT = "/console/{account}"
_TAG = "Console"


class AnyQuery(msgspec.Struct):
    """A query that a page reads by itself: a stray parameter must not turn a page into an error."""


def _get(path: str, handler: Callable[[Call], Awaitable[Answer]], summary: str) -> Route:
    return Route(
        "GET", path, handler, summary, RATE, auth=Auth.OPEN, select=Select.NONE, query=AnyQuery, tag=_TAG,
        media_type="text/html", documented=False,
    )  # fmt: skip


def _post(
    path: str,
    handler: Callable[[Call], Awaitable[Answer]],
    summary: str,
    *,
    rate: Rate = RATE,
    sandbox_only: bool = False,
) -> Route:
    return Route(
        "POST", path, handler, summary, rate, auth=Auth.OPEN, select=Select.NONE, tag=_TAG, form=True,
        media_type="text/html", documented=False, sandbox_only=sandbox_only,
    )  # fmt: skip


def _page(path: str, handler: Handler, summary: str) -> Route:
    return _get(f"{ACCOUNT}{path}", visited(handler), summary)


def _deed(path: str, handler: Handler, summary: str, *, sandbox_only: bool = False) -> Route:
    return _post(f"{ACCOUNT}{path}", visited(handler), summary, sandbox_only=sandbox_only)


def routes(login: LoginDesk) -> list[Route]:
    """Return the rows of the console."""
    taken = [*_entrance(login), *_pages(), *_deeds(), *_controls()]
    return [*taken, *_strays(taken)]


def _strays(taken: list[Route]) -> list[Route]:
    """A person with a browser gets a page at every path under /console, never JSON."""
    return [
        *(_get(path, strays.get_form_path, "On to a form's page") for path in strays.form_paths(taken)),
        *(_get(path, strays.get_nothing, "Nothing is here") for path in strays.empty_paths(taken)),
    ]


def _entrance(login: LoginDesk) -> list[Route]:
    rate = Rate("POST /authenticate", login.calls_per_minute)
    return [
        _get("/", entrance.get_home, "The console"),
        _get("/console/login", entrance.get_login, "The login"),
        _post("/console/login", partial(entrance.post_login, login), "Log in", rate=rate),
        _post("/console/logout", entrance.post_logout, "Log out"),
        _post("/console/preferences", entrance.post_preferences, "Choose language and theme"),
        _get(f"{assets.PREFIX}/{{version}}/{{name}}", assets.get_file, "Style sheet, script, icon"),
    ]


def _pages() -> list[Route]:
    return [
        _page("", overview.get_overview, "Overview"),
        _page("/live", partial(live.get_live, live.Streams()), "Hear of changes"),
        _page("/charges", charges.get_charges, "Charges"),
        _page("/charges/new", charges.get_new_charge, "New charge"),
        _page("/charges/{id}", charges.get_charge, "A charge"),
        _page("/charges/{id}/qr.png", charges.get_image, "A charge's code"),
        _page("/payouts", payouts.get_payouts, "Payouts"),
        _page("/payouts/new", payouts.get_new_payout, "New payout"),
        _page("/payouts/{id}", payouts.get_payout, "A payout"),
        _page("/statement", statement.get_statement, "Statement"),
        _page("/movements/{id}", movements.get_movement, "A movement, or what began it"),
        _page("/statement/export", statement.get_export, "Statement as a file"),
        _page("/webhooks", webhooks.get_webhooks, "Webhooks"),
        _page("/webhooks/new", webhooks.get_new_webhook, "New webhook"),
        _page("/webhooks/{id}", webhooks.get_webhook, "A webhook"),
        _page("/webhooks/{id}/deliveries/{delivery}", webhooks.get_delivery, "A delivery"),
        _page("/api-keys", api_keys.get_api_keys, "API keys"),
        _page("/limits", overview.get_limits, "Limits"),
    ]


def _deeds() -> list[Route]:
    return [
        _deed("/charges", charges.post_charge, "Create a charge"),
        _deed("/charges/{id}/cancel", charges.post_cancel, "Cancel a charge"),
        _deed("/charges/{id}/refund", charges.post_refund, "Refund a charge"),
        _deed("/charges/{id}/refresh", charges.post_refresh, "Ask the provider about a charge"),
        _deed("/payouts", payouts.post_payout, "Send a payout"),
        _deed("/payouts/lookup", payouts.post_lookup, "Look a Pix key up"),
        _deed("/payouts/decode", payouts.post_decode, "Decode a QR code"),
        _deed("/webhooks", webhooks.post_webhook, "Register an endpoint"),
        _deed("/webhooks/{id}/test", webhooks.post_test, "Send a sample"),
        _deed("/webhooks/{id}/amend", webhooks.post_amend, "Change an endpoint"),
        _deed("/webhooks/{id}/rotate", webhooks.post_rotate, "Rotate the signing secret"),
        _deed("/webhooks/{id}/remove", webhooks.post_remove, "Remove an endpoint"),
        _deed("/webhooks/{id}/deliveries/{delivery}/resend", webhooks.post_resend, "Send again"),
        _deed("/api-keys", api_keys.post_api_key, "Create an API key"),
        _deed("/api-keys/{id}/revoke", api_keys.post_revoke, "Revoke an API key"),
    ]


def _controls() -> list[Route]:
    page = Route(
        "GET", f"{ACCOUNT}/sandbox", visited(sandbox.get_sandbox), "Sandbox", RATE, auth=Auth.OPEN,
        select=Select.NONE, query=AnyQuery, tag=_TAG, media_type="text/html", documented=False,
        sandbox_only=True,
    )  # fmt: skip
    deeds: list[tuple[str, Handler, str]] = [
        ("/charges/{id}/pay", sandbox.post_pay, "Pay a charge"),
        ("/charges/{id}/give-back", sandbox.post_charge_back, "Give a charge back"),
        ("/payouts/{id}/settle", sandbox.post_settle, "Settle a payout"),
        ("/payouts/{id}/reject", sandbox.post_reject, "Reject a payout"),
        ("/payouts/{id}/cancel", sandbox.post_cancel, "Cancel a payout"),
        ("/payouts/{id}/give-back", sandbox.post_payout_back, "Send a payout back"),
        ("/sandbox/pix-in", sandbox.post_pix_in, "Receive a Pix"),
        ("/sandbox/clock", sandbox.post_clock, "Move business time"),
        ("/sandbox/faults", sandbox.post_faults, "Have the provider misbehave"),
    ]
    return [page, *(_deed(*row, sandbox_only=True) for row in deeds)]
