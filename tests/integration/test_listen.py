"""`lastro listen` as a child process: what it forwards, and that it goes on from where it was."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from lastro.cli.listening import OVERLAP, PAGE_ROWS, Heard, InboxBytes, Memory, Place, begin, news
from lastro.client import verify_webhook
from lastro.kit.ids import new_id
from tests.support.money import pix_in
from tests.support.service import Service, free_port

LASTRO = str(Path(sys.executable).parent / "lastro")


@dataclass
class Program:
    """A developer's program: keeps what it gets, answers what it is told to."""

    url: str = ""
    status: int = 204
    got: list = field(default_factory=list)

    def ids(self):
        return [headers["webhook-id"] for headers, _ in self.got]


@pytest.fixture
async def program():
    program = Program()

    async def receive(request):
        program.got.append((dict(request.headers), await request.read()))
        return web.Response(status=program.status)

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    program.url = f"http://127.0.0.1:{port}/hook"
    yield program
    await runner.cleanup()


def _hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Listener:
    """`lastro listen` in a process of its own."""

    def __init__(self, service: Service, account, program: Program, data_dir: Path, *words: str) -> None:
        environment = {
            **os.environ,
            "LASTRO_API_KEY": account.api_key,
            "LASTRO_BASE_URL": service.url,
            "LASTRO_DATA_DIR": str(data_dir),
        }
        self.log = data_dir / "listen.log"
        command = [LASTRO, "listen", "--forward-to", program.url, "--json", *words]
        with self.log.open("ab") as log:
            # A suite that runs in the background hands "ignore SIGINT" down; a person's terminal does not.
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdout=log,
                stderr=log,
                preexec_fn=_hear_ctrl_c,  # noqa: PLW1509
            )

    async def ready(self, service: Service) -> None:
        async def greeted():
            assert self.process.poll() is None, self.log.read_text()
            return b"Signing secret" in self.log.read_bytes()

        await service.until(greeted)

    async def stop(self, sign: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sign)
        return await asyncio.to_thread(self.process.wait, 20)

    def told(self):
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


async def until_got(service, program, count):
    async def enough():
        return len(program.got) >= count

    await service.until(enough)


async def test_events_arrive_signed_as_a_webhook_would(service, program, tmp_path):
    account = await service.new_account()
    await pix_in(service, account, 1)
    listener = Listener(service, account, program, tmp_path, "--auth-token", "letmein")
    try:
        await listener.ready(service)
        ids = [await pix_in(service, account, cents) for cents in (2, 3)]
        await until_got(service, program, 2)
    finally:
        assert await listener.stop() == 0
    secret = Memory(tmp_path).secret
    for end_to_end_id, (headers, body) in zip(ids, program.got, strict=True):
        event = verify_webhook(body, headers, secret)
        assert event.event == headers["webhook-event-type"] == "pix.in.received"
        assert event.data.end_to_end_id == end_to_end_id
        assert event.id == headers["webhook-id"]
        assert headers["Content-Type"] == "application/json"
        assert headers["Authorization"] == "Bearer letmein"
    stored = [
        event["id"] for event in (await service.get("/v1/inbox?limit=2", account.api_key)).body["events"]
    ]
    assert program.ids() == stored[::-1]
    assert [(row["status"], row["error"]) for row in listener.told()] == [(204, None)] * 2
    assert all(row["durationMs"] >= 0 for row in listener.told())


async def test_the_bytes_are_those_that_an_endpoint_gets(service, program, tmp_path):
    account = await service.new_account()
    base = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    body = {"url": program.url, "events": ["pix.in.received"]}
    assert (await service.post(base, account.api_key, body)).status == 201
    listener = Listener(service, account, program, tmp_path)
    try:
        await listener.ready(service)
        await pix_in(service, account, 2)
        await until_got(service, program, 2)
    finally:
        await listener.stop()
    (first, body_1), (second, body_2) = program.got
    assert body_1 == body_2
    assert {first["User-Agent"], second["User-Agent"]} > {"lastro-listen"}
    own = {"user-agent", "accept", "accept-encoding", "webhook-signature", "webhook-timestamp"}
    first, second = (
        {n.lower(): v for n, v in one.items() if n.lower() not in own} for one in (first, second)
    )
    assert first == second


async def test_it_goes_on_from_where_it_was(service, program, tmp_path):
    account = await service.new_account()
    listener = Listener(service, account, program, tmp_path)
    await listener.ready(service)
    await pix_in(service, account, 1)
    await until_got(service, program, 1)

    async def kept():  # killed before, it would rightly say the same event again
        place = Memory(tmp_path).load(account.pix_account_id)
        return place is not None and place.heard >= set(program.ids())

    await service.until(kept)
    assert await listener.stop(signal.SIGKILL) != 0
    for cents in (2, 3, 4):
        await pix_in(service, account, cents)
    listener = Listener(service, account, program, tmp_path, "--count", "3")
    assert await asyncio.to_thread(listener.process.wait, 30) == 0
    stored = [event["id"] for event in (await service.get("/v1/inbox", account.api_key)).body["events"]]
    assert program.ids() == stored[::-1]


async def test_it_keeps_forwarding_across_a_restart_of_the_service(program, tmp_path):
    service = Service().start()
    try:
        account = await service.new_account()
        listener = Listener(service, account, program, tmp_path)
        try:
            await listener.ready(service)
            await pix_in(service, account, 1)
            await until_got(service, program, 1)
            service.kill()

            async def noticed():
                return b"Waiting for it." in listener.log.read_bytes()

            await service.until(noticed)
            await service.close()
            service.start()
            await pix_in(service, account, 2)
            await pix_in(service, account, 3)
            await until_got(service, program, 3)
            assert b"It answers again." in listener.log.read_bytes()
        finally:
            await listener.stop()
        stored = [event["id"] for event in (await service.get("/v1/inbox", account.api_key)).body["events"]]
        assert program.ids() == stored[::-1]
    finally:
        await service.close()
        service.destroy()


async def test_a_clock_that_went_ahead_and_came_back_hides_nothing(program, tmp_path):
    service = Service().start()
    try:
        account = await service.new_account()
        listener = Listener(service, account, program, tmp_path)
        try:
            await listener.ready(service)
            await service.advance(10 * 86_400)
            ahead = await pix_in(service, account, 1)
            await until_got(service, program, 1)
            await service.admin("POST", "/sandbox/clock", {"reset": True})
            back = await pix_in(service, account, 2)
            await until_got(service, program, 2)
        finally:
            await listener.stop()
        assert [json.loads(body)["data"]["endToEndId"] for _, body in program.got] == [ahead, back]
    finally:
        await service.close()
        service.destroy()


async def test_a_program_that_fails_is_shown_and_the_event_can_be_sent_again(service, program, tmp_path):
    account = await service.new_account()
    program.status = 500
    listener = Listener(service, account, program, tmp_path, "--count", "1")
    await listener.ready(service)
    await pix_in(service, account, 1)
    assert await asyncio.to_thread(listener.process.wait, 30) == 0
    (told,) = listener.told()
    assert told["status"] == 500

    again = Listener(service, account, program, tmp_path, "--resend", told["eventId"])
    assert await asyncio.to_thread(again.process.wait, 30) == 1
    program.status = 200
    again = Listener(service, account, program, tmp_path, "--resend", told["eventId"])
    assert await asyncio.to_thread(again.process.wait, 30) == 0
    assert program.ids() == [told["eventId"]] * 3
    unknown = Listener(service, account, program, tmp_path, "--resend", "evt_" + "c" * 25)
    assert await asyncio.to_thread(unknown.process.wait, 30) == 1
    assert "There is no event" in unknown.log.read_text()


async def test_only_the_events_asked_for_are_forwarded(service, program, tmp_path):
    account = await service.new_account()
    listener = Listener(service, account, program, tmp_path, "--event", "pix.charge.paid", "--count", "1")
    await listener.ready(service)
    await pix_in(service, account, 1)
    charge = (
        await service.post("/v1/charges", account.api_key, {"variant": "simple", "amountCents": "5"})
    ).body
    await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key)
    assert await asyncio.to_thread(listener.process.wait, 30) == 0
    assert [headers["webhook-event-type"] for headers, _ in program.got] == ["pix.charge.paid"]


# --- where a listener is ----------------------------------------------------------------------------

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Inbox:
    """An inbox of plain values: pages of ids, newest first."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.pages = 0

    def add(self, at: datetime) -> str:
        self.ids.append("evt_" + new_id(at))
        return self.ids[-1]

    def fetch(self, cursor):
        self.pages += 1
        begin_at = int(cursor or 0)
        rows = sorted(self.ids, reverse=True)[begin_at : begin_at + PAGE_ROWS]
        following = begin_at + PAGE_ROWS if begin_at + PAGE_ROWS < len(self.ids) else None
        events = [Heard(one, "pix.in.received", msgspec.Raw(b"{}")) for one in rows]
        return InboxBytes(events, None if following is None else str(following))


def hear(place: Place, inbox: Inbox, now: datetime) -> list[str]:
    found = [event.id for event in news(place, inbox.fetch)]
    place.heard |= set(found)
    place.move_to(now)
    return found


def test_an_event_that_becomes_visible_after_a_younger_one_is_heard():
    inbox = Inbox()
    inbox.add(NOW - timedelta(days=1))
    place = begin(NOW, inbox.fetch)
    younger = inbox.add(NOW + timedelta(seconds=9))
    assert hear(place, inbox, NOW + timedelta(seconds=10)) == [younger]
    late = inbox.add(NOW + timedelta(seconds=5))
    assert hear(place, inbox, NOW + timedelta(seconds=11)) == [late]
    assert hear(place, inbox, NOW + timedelta(seconds=12)) == []


def test_everything_is_heard_once_and_in_order_over_many_pages():
    inbox = Inbox()
    place = begin(NOW, inbox.fetch)
    added = [inbox.add(NOW + timedelta(milliseconds=n)) for n in range(3 * PAGE_ROWS + 5)]
    assert hear(place, inbox, NOW + timedelta(seconds=5)) == added
    assert hear(place, inbox, NOW + timedelta(seconds=6)) == []


def test_what_lies_below_the_floor_is_neither_kept_nor_read():
    inbox = Inbox()
    place = begin(NOW, inbox.fetch)
    for n in range(5 * PAGE_ROWS):
        inbox.add(NOW + timedelta(milliseconds=n))
    hear(place, inbox, NOW + timedelta(minutes=10))
    assert place.heard == set()
    assert place.floor == NOW + timedelta(minutes=10) - OVERLAP
    inbox.pages = 0
    assert hear(place, inbox, NOW + timedelta(minutes=11)) == []
    assert inbox.pages == 1


def test_a_floor_never_sinks():
    place = Place(NOW)
    place.move_to(NOW - timedelta(days=1))
    assert place.floor == NOW


def test_places_and_the_secret_outlive_the_process(tmp_path):
    memory = Memory(tmp_path / "new")
    memory.keep("a", Place(NOW, {"evt_c1"}))
    again = Memory(tmp_path / "new")
    assert again.secret == memory.secret
    assert again.load("a") == Place(NOW, {"evt_c1"})
    assert again.load("b") is None
    assert (tmp_path / "new" / "listen.json").stat().st_mode & 0o077 == 0
    (tmp_path / "new" / "listen.json").write_text("{")
    with pytest.raises(ValueError, match="remove it to begin anew"):
        Memory(tmp_path / "new")
