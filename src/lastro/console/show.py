"""How values look to a person: money, instants, statuses, documents, in either language."""

from datetime import date, datetime
from urllib.parse import urlencode

from lastro.console.words import Language, translate
from lastro.kit.clock import SAO_PAULO
from lastro.kit.documents import format_document
from lastro.webhooks.model import Delivery

_TONES = {
    "good": ("PAID", "SUCCEEDED", "POSTED", "succeeded", "ACTIVE", "APPROVED", "enabled"),
    "wait": ("PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "pending", "retrying", "STUCK"),
    "bad": ("FAILED", "EXPIRED", "exhausted", "REJECTED", "BLOCKED", "refused", "timed_out", "unreachable"),
}
TONE_OF = {status: tone for tone, statuses in _TONES.items() for status in statuses}

_STATUS_WORDS = {
    "PENDING": "Pending",
    "PAID": "Paid",
    "EXPIRED": "Expired",
    "REFUNDED": "Refunded",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
    "PROCESSING": "Processing",
    "SUBMITTED_UNKNOWN": "Outcome unknown",
    "SUCCEEDED": "Succeeded",
    "STUCK": "Stuck",
    "POSTED": "Posted",
    "REVERSED": "Reversed",
    "pending": "Pending",
    "retrying": "Retrying",
    "succeeded": "Delivered",
    "exhausted": "Given up",
    "enabled": "Enabled",
    "disabled": "Disabled",
    "refused": "Refused",
    "redirected": "Redirected",
    "gone": "Gone",
    "timed_out": "Timed out",
    "unreachable": "Unreachable",
    "forbidden_address": "Forbidden address",
    "revoked": "Revoked",
    "APPROVED": "Approved",
    "REJECTED": "Rejected",
    "simple": "Simple",
    "debtor": "With debtor",
    "cobv": "With due date",
    "CREDIT": "Credit",
    "DEBIT": "Debit",
    "PIX_IN": "Received",
    "PIX_OUT": "Sent",
    "PIX_KEY": "Pix key",
    "QR_CODE": "QR code",
    # What a movement did, by its direction and where it began.
    "CREDIT PIX_IN": "Pix received",
    "DEBIT PIX_IN": "Refund of a Pix received",
    "DEBIT PIX_OUT": "Pix sent",
    "CREDIT PIX_OUT": "Reversal of a Pix sent",
    # Why a payout failed: the codes of the SPI, and what the service itself notes.
    "AB03": "settlement timed out",
    "AC03": "wrong branch or account",
    "AC06": "account blocked",
    "AC07": "account closed",
    "AC14": "wrong type of account",
    "AG03": "not supported by the receiver",
    "AM02": "over the receiver's limit",
    "AM04": "payer's institution without funds",
    "BE01": "the document does not fit the account",
    "DS04": "refused by the receiver",
    "ED05": "settlement failed",
    "FRAD": "suspected fraud",
    "RR04": "sanctions",
    "cancelled at the provider": "cancelled at the provider",
    "no answer from the provider": "no answer from the provider",
    "no outcome was recorded in time": "no outcome was recorded in time",
    "the provider never received it": "the provider never received it",
}


class Show:
    """The formats of one language; templates call it `show`."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def money(self, cents: int) -> str:
        """Write an amount as people in Brazil do, with the separators of the language."""
        whole, part = divmod(abs(cents), 100)
        grouped = f"{whole:,}"
        if self.language is Language.PT:
            number = f"{grouped.replace(',', '.')},{part:02d}"
        else:
            number = f"{grouped}.{part:02d}"
        return f"{'-' if cents < 0 else ''}R$\u00a0{number}"

    def signed(self, cents: int) -> str:
        """Write an amount with a plus sign when it is one more."""
        return f"+{self.money(cents)}" if cents > 0 else self.money(cents)

    def number(self, cents: int) -> str:
        """Write an amount as a form takes it, without the currency."""
        return self.money(cents).partition("\u00a0")[2]

    def at(self, instant: datetime) -> str:
        """Write an instant in Sao Paulo, to the second."""
        local = instant.astimezone(SAO_PAULO)
        return f"{self.day(local.date())} {local:%H:%M:%S}"

    def day(self, on: date) -> str:
        """Write a calendar day."""
        if self.language is Language.PT:
            return f"{on.day:02d}/{on.month:02d}/{on.year:04d}"
        return on.isoformat()

    def day_and_month(self, on: date) -> str:
        """Write a calendar day where the year goes without saying."""
        return f"{on.day:02d}/{on.month:02d}" if self.language is Language.PT else f"{on:%b} {on.day}"

    def status(self, status: str) -> str:
        """Name a status, or whatever else is stored as a word; an unknown one stands as it is."""
        words = _STATUS_WORDS.get(status)
        return translate(words, self.language) if words else status

    def reason(self, code: str) -> str:
        """Say what an SPI code means; nothing where we do not know."""
        return self.status(code) if code in _STATUS_WORDS else ""

    @staticmethod
    def sent(delivery: Delivery) -> str:
        """Return a delivery's status; one that failed and waits for its next attempt has its own word."""
        return "retrying" if delivery.status == "pending" and delivery.attempts else delivery.status

    @staticmethod
    def tone(status: str) -> str:
        """Return the colour class of a status; its words stand beside the colour."""
        return TONE_OF.get(status, "plain")

    @staticmethod
    def document(text: str) -> str:
        """Write a CPF or CNPJ with its punctuation; a masked one has it already."""
        return format_document(text) if text.isalnum() else text

    @staticmethod
    def short(text: str, length: int = 14) -> str:
        """Shorten an id in the middle of a list."""
        return text if len(text) <= length else f"{text[: length - 5]}…{text[-4:]}"

    @staticmethod
    def query(**values: str | None) -> str:
        """Write the query of a link, without what is empty."""
        given = {name.rstrip("_"): value for name, value in values.items() if value}
        return f"?{urlencode(given)}" if given else ""
