"""Where a listener is in the inbox, kept in a file, and what it has not heard yet.

The inbox is sorted by ids that begin with the millisecond in which they were drawn. An event may become
visible a little after a younger one (its transaction took longer), and the sandbox's clock may have been
ahead and come back. So a place is not "the last id" but a floor in real time and every id above it that was
heard: nothing is passed over, and nothing is forwarded twice but for a crash in mid-forward.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from lastro.kit.clock import brt, instant
from lastro.kit.page import id_instant
from lastro.kit.signing import new_signing_secret
from lastro.startup import write_private

STATE_FILE = "listen.json"
ID_PREFIX = "evt_"
# Longer than any transaction of the service may take to become visible.
OVERLAP = timedelta(seconds=30)
PAGE_ROWS = 100
PAGES_MAX = 1000


class Heard(msgspec.Struct):
    """An event of the inbox; its data stay the bytes that they are."""

    id: str
    event: str
    data: msgspec.Raw

    @property
    def drawn_at(self) -> datetime:
        """The instant in its id: business time, ahead of real time where the sandbox's clock was moved."""
        return id_instant(self.id.removeprefix(ID_PREFIX))

    @property
    def body(self) -> bytes:
        """The bytes that an endpoint gets."""
        return msgspec.json.encode({"event": self.event, "data": self.data, "eventId": self.id})


class InboxBytes(msgspec.Struct, rename="camel"):
    """A page of the inbox, newest first."""

    events: list[Heard]
    next_cursor: str | None = None


FetchPage = Callable[[str | None], InboxBytes]


@dataclass
class Place:
    """How far a listener has come: all that was drawn before the floor, and these above it."""

    floor: datetime
    heard: set[str] = field(default_factory=set)

    def move_to(self, now: datetime) -> None:
        """Raise the floor after a complete look that began at `now`, and forget what lies below."""
        self.floor = max(self.floor, now - OVERLAP)
        self.heard = {one for one in self.heard if id_instant(one.removeprefix(ID_PREFIX)) >= self.floor}


def above(floor: datetime, fetch: FetchPage) -> Iterator[Heard]:
    """Walk the inbox down to the floor."""
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = fetch(cursor)
        for event in page.events:
            if event.drawn_at < floor:
                return
            yield event
        cursor = page.next_cursor
        if cursor is None:
            return
    raise ValueError(
        f"There are more than {PAGES_MAX * PAGE_ROWS} events since {brt(floor)}: remove {STATE_FILE} "
        "from the data directory to begin anew"
    )


def begin(now: datetime, fetch: FetchPage) -> Place:
    """Return the place of a listener that begins now: what is there already counts as heard."""
    floor = now - OVERLAP
    return Place(floor, {event.id for event in above(floor, fetch)})


def news(place: Place, fetch: FetchPage) -> list[Heard]:
    """Return what was not heard yet, oldest first."""
    found = [event for event in above(place.floor, fetch) if event.id not in place.heard]
    return found[::-1]


class Memory:
    """The file of all listeners of a data directory: one secret, one place for each account."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / STATE_FILE
        self._state = self._load()
        if "secret" not in self._state:
            self._state["secret"] = new_signing_secret()
            self._write()

    @property
    def secret(self) -> str:
        """The secret that forwarded events are signed with; the same at every start."""
        return str(self._state["secret"])

    def load(self, account_id: str) -> Place | None:
        """Return where the listener of an account was."""
        found = self._state["places"].get(account_id)
        return Place(instant(found["floorMs"] / 1000), set(found["heard"])) if found else None

    def keep(self, account_id: str, place: Place) -> None:
        """Write where the listener of an account is."""
        floor_ms = int(place.floor.timestamp() * 1000)
        self._state["places"][account_id] = {"floorMs": floor_ms, "heard": sorted(place.heard)}
        self._write()

    def _load(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {"places": {}}
        except ValueError as error:
            raise ValueError(f"{self._path} cannot be read ({error}); remove it to begin anew") from None
        return state

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._path, json.dumps(self._state))
