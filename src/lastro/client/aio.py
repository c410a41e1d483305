"""The asyncio client: `AsyncLastro`, the same surface with `await` and `async for`."""

import asyncio
import functools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import aiohttp
from yarl import URL

from lastro.client import calls, calls_more
from lastro.client.blocking import BASE_URL
from lastro.client.errors import LastroError
from lastro.client.link import CHUNK_BYTES, IDLE_MAX_S, no_answer
from lastro.client.requests import Answer, Page, Request, Sender, failure, headers, read, target
from lastro.client.retries import Stop, decide

Given = ParamSpec("Given")
Item = TypeVar("Item")


class AsyncLink:
    """Sends requests of one sender on one event loop."""

    def __init__(self, sender: Sender, *, timeout_s: float, retries_max: int) -> None:
        self.sender = sender
        self._timeout_s = timeout_s
        self._retries_max = retries_max
        self._account_id = sender.account_id
        self._session: aiohttp.ClientSession | None = None

    async def run(self, request: Request[Answer]) -> Answer:
        """Send a request, again where that is safe and may help, and return its answer."""
        retries_done = 0
        while True:
            try:
                return await self._try(request)
            except LastroError as error:
                verdict = decide(
                    error,
                    repeatable=request.repeatable,
                    retries_done=retries_done,
                    retries_max=self._retries_max,
                    chance=random.random(),  # noqa: S311  it spreads callers, it guards nothing
                )
                if isinstance(verdict, Stop):
                    raise
            await asyncio.sleep(verdict.wait_s)
            retries_done += 1

    async def stream(self, request: Request[bytes]) -> AsyncIterator[bytes]:
        """Send a request once and yield its body as it comes."""
        idle_only = aiohttp.ClientTimeout(total=None, sock_read=self._timeout_s)
        try:
            async with await self._send(request, idle_only) as response:
                if not 200 <= response.status < 300:
                    raise failure(response.status, response.headers.get("Retry-After"), await response.read())
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(self.sender, error) from error

    async def close(self) -> None:
        """Close the open connections."""
        if self._session is not None:
            await self._session.close()

    async def _try(self, request: Request[Answer]) -> Answer:
        try:
            async with await self._send(request, aiohttp.ClientTimeout(total=self._timeout_s)) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(self.sender, error) from error
        return read(request, response.status, response.headers.get("Retry-After"), body)

    async def _send(self, request: Request[Any], patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        account_id = await self._account(request)
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_MAX_S)
            self._session = aiohttp.ClientSession(connector=connector)
            # aiohttp repeats what it takes for safe by itself; here `decide` alone does.
            self._session._retry_connection = False  # noqa: SLF001
        return await self._session.request(
            request.method,
            URL(self.sender.base_url + target(request, account_id), encoded=True),
            data=request.body,
            headers=headers(request, self.sender, account_id),
            timeout=patience,
            allow_redirects=False,
        )

    async def _account(self, request: Request[Any]) -> str | None:
        """Return the account's id, asked for once where a path or header must name it."""
        if request.needs_account and self._account_id is None:
            self._account_id = (await self.run(calls.get_account())).id
        return self._account_id


class Group:
    """Calls that belong together and share a link."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link


def one(
    build: Callable[Given, Request[Answer]],
) -> Callable[Concatenate[Group, Given], Awaitable[Answer]]:
    """Make a method that sends what `build` builds."""

    @functools.wraps(build)
    async def method(self: Group, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return await self._link.run(build(*args, **kwargs))

    return method


def each(
    build: Callable[Given, Request[Page[Item]]],
) -> Callable[Concatenate[Group, Given], AsyncIterator[Item]]:
    """Make a method that walks all pages of a list and yields its rows."""

    @functools.wraps(build)
    async def method(self: Group, /, *args: Given.args, **kwargs: Given.kwargs) -> AsyncIterator[Item]:
        request = build(*args, **kwargs)
        while True:
            page = await self._link.run(request)
            for item in page.items:
                yield item
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


class AsyncLastro(Group):
    """A client of one Pix account on one event loop; see `Lastro` for what it promises."""

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
        super().__init__(AsyncLink(sender, timeout_s=timeout_s, retries_max=retries_max))
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
    ) -> AsyncIterator[bytes]:
        """Yield the statement as a file (csv, ofx or jsonl), oldest movements first."""
        return self._link.stream(calls.export_statement(format, from_=from_, to=to))

    async def send(self, request: Request[Answer]) -> Answer:
        """Send a request that `lastro.client.calls` built."""
        return await self._link.run(request)

    async def close(self) -> None:
        """Close the open connections."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
