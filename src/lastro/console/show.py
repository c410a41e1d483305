"""How values look to a person: money, instants, statuses, documents, in either language."""

from datetime import date, datetime
from urllib.parse import urlencode

from lastro.console.words import Language, translate
from lastro.kit.clock import SAO_PAULO
from lastro.kit.documents import format_document

_TONES = {
    "good": ("PAID", "SUCCEEDED", "POSTED", "succeeded", "ACTIVE", "APPROVED", "enabled"),
    "wait": ("PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "pending", "STUCK"),
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
        """Name a status."""
        words = _STATUS_WORDS.get(status)
        return translate(words, self.language) if words else status

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
