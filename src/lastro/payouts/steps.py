"""Steps: what was learned of a payout goes through the one table; values in, values out, no database."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from lastro.accounts.model import Terms
from lastro.kit.clock import utc
from lastro.kit.errors import InvalidState
from lastro.kit.ids import new_id
from lastro.kit.record import Record
from lastro.ledger.decide import book
from lastro.ledger.model import Balance, Booked, MovementStatus, Posting
from lastro.outbox.model import (
    Alarm,
    Event,
    EventName,
    PayoutFailed,
    PayoutRefunded,
    PayoutSucceeded,
    new_alarm,
    new_event,
)
from lastro.payouts.decide import (
    Render,
    metadata,
    next_check_at,
    refund_posting,
    reverse_posting,
    take_again_posting,
)
from lastro.payouts.model import OPEN, STEPS, Books, Fact, Handover, Payout, PayoutStatus, Reading, Step
from lastro.provider.port import Party, Return

CREATED = 201  # with which every request to send is answered once its intent stands
RETURN = "return"
SETTLED = "payout_settled"
REFUSED = "payout_refused"


class News(Record, frozen=True, gc=False):
    """One thing learned of a payout."""

    fact: Fact
    at: datetime | None = None
    code: str | None = None
    message: str | None = None
    response: dict[str, Any] | None = None
    provider_code: str | None = None
    returned: Return | None = None
    end_to_end_id: str | None = None


class Deed(NamedTuple):
    """An operator's word behind what is learned; its audit row commits with the effect."""

    audit_id: str
    actor: str
    action: str
    reason: str


class Learn(Record, frozen=True, gc=False):
    """Apply what was learned; `polled_at` counts a check, `render` asks for the answer to be stored."""

    account_id: str
    payout_id: str
    news: tuple[News, ...]
    polled_at: datetime | None = None
    not_found: bool = False
    render: Render | None = None
    deed: Deed | None = None


class Batch:
    """What a batch of outcomes has read, and what it will write."""

    def __init__(
        self,
        balances: dict[str, Balance],
        accounts: dict[str, Terms],
        payouts: dict[tuple[str, str], Payout],
        known: set[tuple[str, str, str]],
        payers: dict[str, Party],
        *,
        now: datetime,
    ) -> None:
        self.balances = balances
        self.accounts = accounts
        self.before = dict(payouts)
        self.payouts = payouts
        self.known = known
        self.payers = payers
        self.now = now
        self.booked: list[Booked] = []
        self.movements: list[tuple[str, str, MovementStatus, str | None]] = []
        self.events: list[Event] = []
        self.alarms: list[Alarm] = []
        self.facts: list[tuple[str, str, str, str | None, datetime]] = []
        self.handovers: list[Handover] = []
        self.consumed: dict[tuple[str, datetime], int] = {}

    def book(self, posting: Posting, account_id: str) -> None:
        """Add a movement to the account's chain."""
        item = book(self.balances[account_id], posting, now=self.now)
        self.balances[account_id] = item.balance
        self.booked.append(item)

    def consume(self, payout: Payout, cents: int) -> None:
        """Count an amount to the window that the payout came from, or off it."""
        key = (payout.account_id, payout.window_start)
        self.consumed[key] = self.consumed.get(key, 0) + cents

    def alarm(self, payout: Payout, kind: str, detail: str) -> None:
        """Have a person look at this payout."""
        self.alarms.append(new_alarm(payout.account_id, kind, payout.payout_id, detail, now=self.now))


def apply_news(batch: Batch, command: Learn) -> InvalidState | None:
    """Take one payout through everything that was learned of it; an operator decides open ones only."""
    name = (command.account_id, command.payout_id)
    if command.deed is not None and batch.payouts[name].status not in OPEN:
        return InvalidState(f"The payout is {batch.payouts[name].status} already.")
    for news in command.news:
        payout = batch.payouts[name]
        fact = _fact_of(batch, payout, news)
        if fact is None:
            continue
        step = STEPS[PayoutStatus(payout.status), fact]
        if step is Reading.ALARM:
            batch.alarm(payout, "payout", f"{fact} while {payout.status}")
        if isinstance(step, Step):
            batch.payouts[name] = _take(batch, payout, step, news)
        elif news.provider_code:
            batch.payouts[name] = payout.but(provider_code=news.provider_code)
    payout = batch.payouts[name]
    next_at = next_check_at(payout, now=batch.now) if payout.status in OPEN else None
    batch.payouts[name] = payout.but(next_poll_at=next_at, **_counted(batch, payout, command))
    return None


def _counted(batch: Batch, payout: Payout, command: Learn) -> dict[str, Any]:
    """Count a look-up once, also when its batch runs again; a clock that was set back starts anew."""
    at, last = command.polled_at, payout.last_polled_at
    if at is None or (last is not None and at <= last <= batch.now):
        return {}
    return {
        "last_polled_at": at,
        "poll_attempts": payout.poll_attempts + 1,
        "not_found_count": payout.not_found_count + (1 if command.not_found else 0),
        "updated_at": batch.now,
    }


def _fact_of(batch: Batch, payout: Payout, news: News) -> Fact | None:
    """Name the fact; a return counts once and is partial or total by what came back before."""
    if news.returned is None:
        return news.fact
    if (payout.account_id, RETURN, news.returned.return_id) in batch.known:
        return None
    covered = payout.refunded_cents + news.returned.amount_cents >= payout.amount_cents
    return Fact.RETURNED_IN_FULL if covered else Fact.RETURNED_IN_PART


def _take(batch: Batch, payout: Payout, step: Step, news: News) -> Payout:
    """Make one step: the ledger, the event, the record."""
    # The provider's word: a retry after a restored backup finds its order there under the first one's id.
    sent_as = news.end_to_end_id or payout.end_to_end_id
    after = payout.but(
        status=step.to,
        end_to_end_id=sent_as,
        provider_code=news.provider_code or payout.provider_code,
        last_error=news.message or payout.last_error,
        updated_at=batch.now,
    )
    if step.alarm:
        batch.alarm(payout, "payout_after_all", f"{news.fact} after {payout.status}")
    if step.books is Books.KEEP:
        return after
    account = batch.accounts[payout.account_id]
    if step.books is Books.REVERSE:
        return _reverse(batch, after, account, news)
    if step.books is Books.CREDIT_BACK:
        return _credit_back(batch, after, account, news)
    return _settle(batch, after, account, news, again=step.books is Books.TAKE_AGAIN)


def _reverse(batch: Batch, payout: Payout, account: Terms, news: News) -> Payout:
    movement_id = new_id(batch.now)
    batch.book(reverse_posting(payout, account, movement_id), payout.account_id)
    batch.movements.append((payout.account_id, payout.movement_id, MovementStatus.REVERSED, None))
    batch.facts.append((payout.account_id, REFUSED, payout.end_to_end_id, movement_id, batch.now))
    batch.consume(payout, -payout.amount_cents)
    cancelled = payout.status == PayoutStatus.CANCELLED
    data = PayoutFailed(
        payout_id=payout.payout_id,
        movement_id=payout.movement_id,
        end_to_end_id=payout.end_to_end_id,
        amount_cents=str(payout.amount_cents),
        occurred_at=utc(batch.now),
        reason=news.code,
    )
    event = EventName.PAYOUT_CANCELLED if cancelled else EventName.PAYOUT_FAILED
    batch.events.append(new_event(payout.account_id, event, data, now=batch.now))
    return payout.but(
        resolved_at=batch.now,
        last_error=news.message,
        provider_status_code=news.code,
        provider_response=msgspec.json.encode(news.response).decode() if news.response else None,
    )


def _settle(batch: Batch, payout: Payout, account: Terms, news: News, *, again: bool) -> Payout:
    paid_at = news.at or batch.now
    if again:
        payout = payout.but(movement_id=new_id(batch.now))
        posting = take_again_posting(payout, account, payout.movement_id, settled_at=paid_at)
        batch.book(posting, payout.account_id)
        batch.consume(payout, payout.amount_cents)
    else:
        written = metadata(payout, account, settled_at=paid_at)
        batch.movements.append((payout.account_id, payout.movement_id, MovementStatus.POSTED, written))
    batch.facts.append((payout.account_id, SETTLED, payout.end_to_end_id, payout.movement_id, batch.now))
    if payout.receiver_account_id and payout.account_id in batch.payers:
        batch.handovers.append(_handover(batch, payout, paid_at))
    data = PayoutSucceeded(
        payout_id=payout.payout_id,
        end_to_end_id=payout.end_to_end_id,
        movement_id=payout.movement_id,
        occurred_at=utc(batch.now),
        amount_cents=str(payout.amount_cents),
    )
    batch.events.append(new_event(payout.account_id, EventName.PAYOUT_SUCCEEDED, data, now=batch.now))
    return payout.but(
        paid_at=paid_at,
        resolved_at=batch.now,
        last_error=None,
        provider_status_code=None,
        provider_response=None,
    )


def _handover(batch: Batch, payout: Payout, paid_at: datetime) -> Handover:
    return Handover(
        account_id=payout.account_id,
        end_to_end_id=payout.end_to_end_id,
        receiver_account_id=payout.receiver_account_id or "",
        amount_cents=payout.amount_cents,
        txid=payout.txid,
        payer=msgspec.json.encode(batch.payers[payout.account_id]._asdict()).decode(),
        paid_at=paid_at,
        credited_at=None,
    )


def _credit_back(batch: Batch, payout: Payout, account: Terms, news: News) -> Payout:
    returned = news.returned
    if returned is None:
        raise TypeError("a return names what came back")
    movement_id = new_id(batch.now)
    posting = refund_posting(
        payout, account, movement_id, return_id=returned.return_id, amount_cents=returned.amount_cents
    )
    batch.book(posting, payout.account_id)
    batch.known.add((payout.account_id, RETURN, returned.return_id))
    batch.facts.append((payout.account_id, RETURN, returned.return_id, movement_id, batch.now))
    data = PayoutRefunded(
        payout_id=payout.payout_id,
        movement_id=payout.movement_id,
        end_to_end_id=payout.end_to_end_id,
        amount_cents=str(payout.amount_cents),
        occurred_at=utc(batch.now),
        refund_end_to_end_id=returned.return_id,
        refund_amount_cents=str(returned.amount_cents),
    )
    batch.events.append(new_event(payout.account_id, EventName.PAYOUT_REFUNDED, data, now=batch.now))
    return payout.but(
        refunded_cents=payout.refunded_cents + returned.amount_cents, refund_end_to_end_id=returned.return_id
    )
