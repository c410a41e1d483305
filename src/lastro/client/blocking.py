"""The blocking client: `Lastro`."""

import functools
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Self, TypeVar

from lastro.client import calls, calls_more
from lastro.client.link import Link
from lastro.client.requests import Answer, Page, Request, Sender

Given = ParamSpec("Given")
Item = TypeVar("Item")
BASE_URL = "http://127.0.0.1:8000"


class Group:
    """Calls that belong together and share a link."""

    def __init__(self, link: Link) -> None:
        self._link = link


def one(build: Callable[Given, Request[Answer]]) -> Callable[Concatenate[Group, Given], Answer]:
    """Make a method that sends what `build` builds."""

    @functools.wraps(build)
    def method(self: Group, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return self._link.run(build(*args, **kwargs))

    return method


def each(build: Callable[Given, Request[Page[Item]]]) -> Callable[Concatenate[Group, Given], Iterator[Item]]:
    """Make a method that walks all pages of a list and yields its rows."""

    @functools.wraps(build)
    def method(self: Group, /, *args: Given.args, **kwargs: Given.kwargs) -> Iterator[Item]:
        request = build(*args, **kwargs)
        while True:
            page = self._link.run(request)
            yield from page.items
            if page.next_cursor is None:
                return
            request = request.after(page.next_cursor)

    return method


class Charges(Group):
    """Asking for money."""

    create = one(calls.create_charge)
    page = one(calls.list_charges)
    list = each(calls.list_charges)
    get = one(calls.get_charge)
    by_external_ref = one(calls.get_charge_by_external_ref)
    refresh = one(calls.refresh_charge)
    cancel = one(calls.cancel_charge)
    refund = one(calls.refund_charge)
    refunds = one(calls.list_refunds)


class Payouts(Group):
    """Sending money."""

    send = one(calls.send_payout)
    pay_qr = one(calls.pay_qr)
    page = one(calls.list_payouts)
    list = each(calls.list_payouts)
    get = one(calls.get_payout)
    by_external_ref = one(calls.get_payout_by_external_ref)
    by_end_to_end_id = one(calls.get_payout_by_end_to_end_id)
    movement = one(calls.get_payout_movement)
    movement_by_end_to_end_id = one(calls.get_movement_by_end_to_end_id)


class Webhooks(Group):
    """Endpoints that are told, and what they were told."""

    create = one(calls_more.create_webhook)
    page = one(calls_more.list_webhooks)
    list = each(calls_more.list_webhooks)
    get = one(calls_more.get_webhook)
    change = one(calls_more.change_webhook)
    delete = one(calls_more.delete_webhook)
    test = one(calls_more.try_webhook)
    rotate_secret = one(calls_more.rotate_secret)
    deliveries_page = one(calls_more.list_deliveries)
    deliveries = each(calls_more.list_deliveries)
    delivery = one(calls_more.get_delivery)
    resend = one(calls_more.resend_delivery)


class Sandbox(Group):
    """The other bank, and time: absent in live mode."""

    pay = one(calls_more.sandbox_pay)
    pix_in = one(calls_more.sandbox_pix_in)
    refund_charge = one(calls_more.sandbox_refund_charge)
    settle = one(calls_more.sandbox_settle)
    reject = one(calls_more.sandbox_reject)
    cancel = one(calls_more.sandbox_cancel)
    refund_payout = one(calls_more.sandbox_refund_payout)
    advance = one(calls_more.sandbox_advance)
    reset_clock = one(calls_more.sandbox_reset_clock)
    faults = one(calls_more.sandbox_faults)


class Lastro(Group):
    """A client of one Pix account; one object serves many threads.

    Every POST carries an Idempotency-Key that its retries keep. Retries happen only where they are safe,
    wait as long as `Retry-After` says, and end after `retries_max`.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = BASE_URL,
        *,
        account_id: str | None = None,
        timeout_s: float = 30.0,
        retries_max: int = 4,
    ) -> None:
        sender = Sender(api_key, base_url.rstrip("/"), account_id)
        super().__init__(Link(sender, timeout_s=timeout_s, retries_max=retries_max))
        self.charges = Charges(self._link)
        self.payouts = Payouts(self._link)
        self.webhooks = Webhooks(self._link)
        self.sandbox = Sandbox(self._link)

    lookup = one(calls.look_up)
    decode_qr = one(calls.decode_qr)
    account = one(calls.get_account)
    limits = one(calls.get_limits)
    fees = one(calls.get_fees)
    rate_limit = one(calls.get_rate_limit)
    balance = one(calls.get_balance)
    statement_page = one(calls.get_statement)
    statement = each(calls.get_statement)
    summary = one(calls.get_summary)
    movement = one(calls.get_movement)
    movement_full = one(calls.get_movement_full)
    inbox_page = one(calls.get_inbox)
    inbox = each(calls.get_inbox)
    get = one(calls.get_path)

    def export(
        self,
        format: str = "csv",  # noqa: A002  the API's word
        *,
        from_: calls.Day | None = None,
        to: calls.Day | None = None,
    ) -> Iterator[bytes]:
        """Yield the statement as a file (csv, ofx or jsonl), oldest movements first."""
        return self._link.stream(calls.export_statement(format, from_=from_, to=to))

    def send(self, request: Request[Answer]) -> Answer:
        """Send a request that `lastro.client.calls` built."""
        return self._link.run(request)

    def close(self) -> None:
        """Close the open connections."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
