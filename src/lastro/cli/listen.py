"""`lastro listen`: events of the account, forwarded to a program on this machine as a webhook would come."""

import http.client
import json
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click
from rich.text import Text

from lastro.cli.listening import PAGE_ROWS, PAGES_MAX, Heard, InboxBytes, Memory, begin, news
from lastro.cli.probe import look
from lastro.cli.service import NEGATIVE, Service, stop, with_service
from lastro.cli.show import console
from lastro.client import EVENT_NAMES, NoAnswer, RateLimited, Unavailable, calls
from lastro.client.requests import Request
from lastro.kit.clock import Clock, brt
from lastro.kit.signing import sign_webhook

POLL_EVERY_S = 1.0
AWAY_WAIT_S = 2.0
FORWARD_TIMEOUT_S = 30.0
SERVICE_TIMEOUT_S = 5.0  # what a real endpoint has


class Forwarded(NamedTuple):
    """What the program answered."""

    status: int | None
    duration_ms: int
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Tell whether the service would count it as delivered."""
        return self.status is not None and 200 <= self.status < 300


@click.command()
@click.option("--forward-to", help="Where the program listens: http://127.0.0.1:3000/hook")
@click.option("--event", "events", type=click.Choice(list(EVENT_NAMES)), multiple=True, help="Only these.")
@click.option("--auth-token", help="Sent as `Authorization: Bearer ...`, as a registered one would be.")
@click.option("--resend", metavar="EVENT_ID", help="Forward this event once more, then end.")
@click.option("--count", type=click.IntRange(1), help="End after so many events.")
@click.option("--print-secret", is_flag=True, help="Print the signing secret and end.")
@with_service
def listen(
    service: Service,
    *,
    forward_to: str | None,
    events: tuple[str, ...],
    auth_token: str | None,
    resend: str | None,
    count: int | None,
    print_secret: bool,
) -> None:
    """Forward the account's events to a program, signed, from where the last listener was."""
    memory = Memory(service.data_dir)
    if print_secret:
        click.echo(memory.secret)
        return
    if forward_to is None or not forward_to.startswith(("http://", "https://")):
        raise click.UsageError("Say where the program listens: --forward-to http://127.0.0.1:3000/hook")
    ear = Ear(service, memory, Program(forward_to, memory.secret, auth_token), frozenset(events))
    if resend is not None:
        ear.resend(resend)
        return
    try:
        ear.listen(count)
    except KeyboardInterrupt:
        click.echo("Stopped. The next `lastro listen` goes on from here.", err=True)


class Program(NamedTuple):
    """The program that events go to, and what they are signed with."""

    url: str
    secret: str
    auth_token: str | None

    def forward(self, event: Heard) -> Forwarded:
        """Send an event as the service would."""
        body, timestamp_s = event.body, int(Clock.real().timestamp())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "lastro-listen",
            "webhook-event-type": event.event,
            "webhook-id": event.id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": sign_webhook(self.secret, event.id, timestamp_s, body),
        }
        if self.auth_token is not None:
            headers["Authorization"] = f"Bearer {self.auth_token}"
        started_s = time.monotonic()
        status, error = _post(self.url, body, headers)
        return Forwarded(status, int((time.monotonic() - started_s) * 1000), error)


def _post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int | None, str | None]:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=FORWARD_TIMEOUT_S)
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return None, str(error) or type(error).__name__
    return response.status, None


class Ear:
    """One listener: hears the inbox, forwards what is new, remembers where it is."""

    def __init__(self, service: Service, memory: Memory, program: Program, events: frozenset[str]) -> None:
        self._service, self._memory, self._program, self._events = service, memory, program, events
        self._ahead = timedelta()
        self._away = False

    def listen(self, count: int | None) -> None:
        """Forward for ever, or so many events; a service that is away is waited for."""
        account_id = self._patient(lambda: self._service.client.account().id)
        self._patient(self._measure)
        place = self._memory.load(account_id)
        if place is None:
            place = self._patient(lambda: begin(self._now(), self._page))
            self._memory.keep(account_id, place)
        self._greet(account_id)
        while True:
            began_at = self._now()
            for event in self._patient(lambda: news(place, self._page)):
                if not self._events or event.event in self._events:
                    self._tell(event, self._program.forward(event))
                    count = None if count is None else count - 1
                place.heard.add(event.id)
                self._memory.keep(account_id, place)
                if count == 0:
                    return
            place.move_to(began_at)
            time.sleep(POLL_EVERY_S)

    def resend(self, event_id: str) -> None:
        """Forward one event of the last 30 days again."""
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = self._page(cursor)
            found = next((event for event in page.events if event.id == event_id), None)
            if found is not None:
                result = self._program.forward(found)
                self._tell(found, result)
                if not result.ok:
                    raise SystemExit(NEGATIVE)
                return
            cursor = page.next_cursor
            if cursor is None:
                break
        stop(f"There is no event {event_id} in the last 30 days of this account.", NEGATIVE)

    def _page(self, cursor: str | None) -> InboxBytes:
        asked: Request[Any] = replace(calls.get_inbox(limit=PAGE_ROWS, cursor=cursor), answer=InboxBytes)  # type: ignore[arg-type]
        page: InboxBytes = self._service.client.send(asked)
        return page

    def _measure(self) -> None:
        """Learn how far the service's clock is from ours: floors are kept in its time."""
        try:
            self._ahead = look(self._service.base_url, "/healthz").ahead or timedelta()
        except OSError as error:
            raise NoAnswer(f"{self._service.base_url} does not answer: {error}", code="no_answer") from error

    def _now(self) -> datetime:
        return Clock.real() + self._ahead

    def _patient(self, act: Any) -> Any:  # noqa: ANN401  whatever the act returns
        """Do something that needs the service, however long it is away."""
        while True:
            try:
                found = act()
            except (NoAnswer, Unavailable, RateLimited) as error:
                if not self._away and not isinstance(error, RateLimited):
                    click.echo(f"{error.message} Waiting for it.", err=True)
                    self._away = True
                time.sleep(max(AWAY_WAIT_S, error.retry_after_s or 0.0))
                continue
            if self._away:
                click.echo("It answers again.", err=True)
                self._away = False
            return found

    def _greet(self, account_id: str) -> None:
        click.echo(
            f"Listening to account {account_id} at {self._service.base_url}\n"
            f"Forwarding to {self._program.url}\n"
            f"Signing secret: {self._program.secret}\n",
            err=True,
        )

    def _tell(self, event: Heard, result: Forwarded) -> None:
        """Show what became of an event."""
        if self._service.as_json:
            told = {
                "at": brt(Clock.real()),
                "eventId": event.id,
                "event": event.event,
                "status": result.status,
                "durationMs": result.duration_ms,
                "error": result.error,
            }
            click.echo(json.dumps(told))
            return
        line = Text(f"{Clock.real().astimezone():%H:%M:%S}  {event.event:<21} {event.id}  ")
        line.append(str(result.status or "no answer"), style="green" if result.ok else "red")
        line.append(f"  {result.duration_ms} ms")
        if result.error:
            line.append(f"  {result.error}", style="red")
        elif result.duration_ms > SERVICE_TIMEOUT_S * 1000:
            line.append(
                f"  slower than {SERVICE_TIMEOUT_S:g} s: a webhook would count as failed", style="red"
            )
        console().print(line, soft_wrap=True)
