"""Random commands: what the workers do to the service, each choice drawn from the worker's own generator."""

import asyncio
import random
import time
from datetime import timedelta
from typing import Any

import aiohttp

from tests.model.history import Attempt, Told
from tests.model.world import World, advance, set_faults
from tests.support.service import Reply

DESTINATIONS = (
    "ok", "ok", "ok", "slow-30", "slow-600", "reject-AC03", "reject-am02", "fail-AB03", "timeout", "lost",
    "stuck", "cancel", "refund", "missing",
)  # fmt: skip
FAULTS: tuple[dict[str, Any], ...] = (
    {},
    {"errorRate": 0.15},
    {"dropRate": 0.15},
    {"duplicateRate": 0.5},
    {"latencyMs": 40},
    {"errorRate": 0.3, "dropRate": 0.3, "duplicateRate": 0.5},
    {"errorRate": 0.1, "dropRate": 0.1, "latencyMs": 15},
)
TOLD = 0.75
STALL_MS = 5_500
CLOCK_BUDGET_S = 20 * 86_400
PATIENCE_S = 90

# Refusals that the rules allow; any other answer is a surprise.
REFUSED: dict[str, set[str]] = {
    "charge": {"validation_error", "external_ref_conflict"},
    "payout": {
        "insufficient_funds", "limit_exceeded", "same_account", "pix_key_not_found", "external_ref_conflict",
    },
    "qr": {
        "insufficient_funds", "limit_exceeded", "same_account", "amount_mismatch", "qr_code_expired",
        "qr_code_already_paid", "qr_code_not_found",
    },
    "refund": {"invalid_state", "refund_exceeds_amount", "insufficient_funds", "refund_window_closed"},
    "cancel": {"invalid_state"},
    "refresh": set(),
    "pay": set(),
    "pix-in": set(),
    "force": {"invalid_state"},
    "give back": {"invalid_state", "refund_exceeds_amount"},
}  # fmt: skip


class Worker:
    """One client: a generator of its own, commands by weight."""

    def __init__(self, world: World, number: int, seed: str) -> None:
        self.world = world
        self.number = number
        self.rng = random.Random(f"{seed}/{number}")
        self.weights = {
            self.create_charge: 16, self.pay_charge: 18, self.refund: 8, self.provider_refund: 4,
            self.send: 20, self.send_inside: 7, self.pay_code: 8, self.force: 5, self.payout_back: 4,
            self.cancel: 4, self.refresh: 4, self.pix_in: 5, self.read_payout: 8, self.read_statement: 5,
            self.repeat: 8, self.reuse_key: 2, self.resolve: 6, self.move_clock: 2, self.change_faults: 2,
        }  # fmt: skip

    async def one(self) -> None:
        """Do one command."""
        command = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        await command()

    # --- asking -------------------------------------------------------------------------------------

    async def ask(self, attempt: Attempt, *, patience_s: float = PATIENCE_S) -> Told:
        """Send a request once; no answer within the patience cuts the connection."""
        world = self.world
        began = time.monotonic()
        reply: Reply | None = None
        request = world.service.post(
            attempt.path, world.keys[attempt.account], attempt.body, idempotency_key=attempt.key or None
        )
        try:
            reply = await asyncio.wait_for(request, patience_s)
        except (TimeoutError, aiohttp.ClientError) as error:
            if patience_s == PATIENCE_S:
                world.history.surprises.append(f"{attempt.op} {attempt.path}: no answer at all, {error!r}")
        except AssertionError as error:
            world.history.surprises.append(f"{attempt.op} {attempt.path}: {error}")
        ended = time.monotonic()
        told = Told(began, ended, *((reply.status, reply.body, reply.raw) if reply else (None, None, b"")))
        attempt.told.append(told)
        world.history.write(world.step, self.number, attempt, told)
        if told.code and not told.ambiguous and told.code not in REFUSED[attempt.op]:
            world.history.surprises.append(f"{attempt.op} {attempt.path} {attempt.body}: {told.body}")
        return told

    async def act(self, op: str, account: str, path: str, body: dict[str, Any], **about: Any) -> Attempt:
        """Ask under a fresh key, sometimes twice at once or with little patience, then again if unclear."""
        key = f"k{self.rng.getrandbits(96):024x}"
        attempt = self.world.history.attempts[key] = Attempt(op, account, path, body, key, about)
        mood = self.rng.random()
        if mood < 0.12:
            await self.ask(attempt, patience_s=self.rng.uniform(0.001, 0.06))
        elif mood < 0.2:
            await asyncio.gather(*(self.ask(attempt) for _ in range(self.rng.randint(2, 3))))
        else:
            await self.ask(attempt)
        for _ in range(self.rng.choice((0, 1, 3))):
            if attempt.answer is not None:
                break
            await self.ask(attempt)
        self.learn(attempt)
        return attempt

    def learn(self, attempt: Attempt) -> None:
        """Remember a record that a client was told of, once."""
        answer = attempt.answer
        if answer is None or answer.status != 201 or attempt.about.get("known"):
            return
        attempt.about["known"] = True
        if attempt.op == "charge":
            self.world.charges.append({**answer.body, "account": attempt.account})
        elif attempt.op in {"payout", "qr"}:
            record = {
                "id": answer.body["payoutId"],
                "account": attempt.account,
                "amount": int(attempt.body["amountCents"]),
            }
            self.world.payouts.append({**record, "word": attempt.about.get("word", "")})

    def pick(self, items: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Choose, mostly among the newest."""
        if not items:
            return None
        recent = items[-40:] if self.rng.random() < 0.7 else items
        return self.rng.choice(recent)

    def cents(self) -> int:
        return self.rng.choice((1, self.rng.randint(2, 300), self.rng.randint(300, 30_000), 66_602, 66_603))

    # --- charges ------------------------------------------------------------------------------------

    async def create_charge(self) -> None:
        rng, now = self.rng, self.world.now
        variant = rng.choice(("simple", "simple", "debtor", "cobv"))
        amount = 66_601 if rng.random() < 0.04 else self.cents()
        body: dict[str, Any] = {"variant": variant, "amountCents": str(amount)}
        if rng.random() < 0.5:
            body["tag"] = f"tag {rng.randint(1, 99)}"
        if rng.random() < 0.2:
            body["externalRef"] = self._reference()
        if variant != "simple":
            body |= {"debtorName": "Ana Lima", "debtorDocument": "52998224725"}
        if variant == "cobv":
            due = (now + timedelta(days=rng.randint(1, 3))).date()
            body |= {"dueDate": due.isoformat(), "validAfterDueDays": rng.randint(0, 5)}
            if rng.random() < 0.7:
                body |= rng.choice(
                    ({"typeFine": "PERCENT", "fine": 2.5}, {"typeFine": "VALUE", "fine": 1.37})
                )
        elif rng.random() < 0.6:
            until = now + timedelta(seconds=rng.choice((2, 5, 20, 120, 4_000)))
            body["expirationDate"] = until.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        await self.act("charge", rng.choice(self.world.accounts).id, "/v1/charges", body)

    def _reference(self) -> str:
        if self.rng.random() < 0.3 and self.world.refs:
            return f"ref-{self.rng.randint(1, self.world.refs)}"
        self.world.refs += 1
        return f"ref-{self.world.refs}"

    async def control(self, op: str, account: str, path: str, body: dict[str, Any], **about: Any) -> Attempt:
        """Press a button of the sandbox: these have no key, so they are never repeated."""
        attempt = Attempt(op, account, path, body, "", about)
        lists = {
            "force": self.world.history.forces.setdefault(about.get("payout", ""), []),
            "give back": self.world.history.given_back,
        }
        lists.get(op, self.world.history.pays).append(attempt)
        hasty = self.rng.random() < 0.08
        await self.ask(attempt, patience_s=self.rng.uniform(0.001, 0.05) if hasty else PATIENCE_S)
        return attempt

    async def pay_charge(self) -> None:
        charge = self.pick(self.world.charges)
        if charge is None:
            return
        body: dict[str, Any] = {"payerName": self.rng.choice(("Bruno Dias", "Carla Gomes"))}
        if self.rng.random() < 0.15:
            body["amountCents"] = str(max(1, int(charge["amountCents"]) + self.rng.choice((-1, 1, 500))))
        if self.rng.random() < 0.15:
            body["notify"] = False
        for _ in range(2 if self.rng.random() < 0.1 else 1):
            await self.control("pay", charge["account"], f"/sandbox/charges/{charge['id']}/pay", body)

    async def pix_in(self) -> None:
        terms = self.rng.choice(self.world.accounts)
        cents = self.rng.choice((1, 3, self.rng.randint(100, 200_000)))
        await self.control(
            "pix-in", terms.id, "/sandbox/pix-in", {"pixAccountId": terms.id, "amountCents": str(cents)}
        )

    async def refund(self) -> None:
        charge = self.pick(self.world.charges)
        if charge is None:
            return
        body = {}
        if self.rng.random() < 0.7:
            body["amountCents"] = str(
                self.rng.choice((1, self.rng.randint(1, int(charge["amountCents"])), 66_602, 66_603))
            )
        await self.act(
            "refund", charge["account"], f"/v1/charges/{charge['id']}/refunds", body, charge=charge["id"]
        )

    async def provider_refund(self) -> None:
        charge = self.pick(self.world.charges)
        if charge is None:
            return
        body: dict[str, Any] = {"notify": self.rng.random() < TOLD}
        if self.rng.random() < 0.7:
            body["amountCents"] = str(self.rng.randint(1, int(charge["amountCents"])))
        await self.control("give back", charge["account"], f"/sandbox/charges/{charge['id']}/refund", body)

    async def cancel(self) -> None:
        charge = self.pick(self.world.charges)
        if charge is not None:
            await self.act(
                "cancel", charge["account"], f"/v1/charges/{charge['id']}/cancel", {}, charge=charge["id"]
            )

    async def refresh(self) -> None:
        charge = self.pick(self.world.charges)
        if charge is not None:
            await self.act("refresh", charge["account"], f"/v1/charges/{charge['id']}/refresh", {})

    # --- payouts ------------------------------------------------------------------------------------

    async def send(self) -> None:
        word = self.rng.choice(DESTINATIONS)
        body = {"pixKey": f"{word}@sandbox.test", "pixKeyType": "EMAIL", "amountCents": str(self.cents())}
        if self.rng.random() < 0.15:
            word, body["pixKey"], body["pixKeyType"] = "", "52998224725", "CPF"
        if self.rng.random() < 0.15:
            body["externalRef"] = self._reference()
        if self.rng.random() < 0.03:
            body["amountCents"] = str(self.rng.choice((900_000, 120_000, 1_500_000)))
        await self.act("payout", self.rng.choice(self.world.accounts).id, "/v1/payouts", body, word=word)

    async def send_inside(self) -> None:
        payer, receiver = self.rng.choice(self.world.accounts), self.rng.choice(self.world.accounts)
        body = {"pixKey": receiver.pix_key, "pixKeyType": "EVP", "amountCents": str(self.cents())}
        await self.act("payout", payer.id, "/v1/payouts", body, receiver=receiver.id)

    async def pay_code(self) -> None:
        charge = self.pick([item for item in self.world.charges[-200:] if item["brCode"]])
        if charge is None:
            return
        cents = int(charge["amountCents"]) + (7 if self.rng.random() < 0.05 else 0)
        body = {"pixCopyAndPaste": charge["brCode"], "amountCents": str(cents)}
        payer = self.rng.choice(self.world.accounts)
        await self.act("qr", payer.id, "/v1/payouts/qr-code", body, receiver=charge["account"])

    async def force(self) -> None:
        payout = self.pick(self.world.payouts)
        if payout is None or payout["id"] in self.world.history.forces:
            return
        verb, status = self.rng.choice(
            (("settle", "SETTLED"), ("reject", "REJECTED"), ("cancel", "CANCELLED"))
        )
        body = {"code": "AM02"} if verb == "reject" else {}
        code = "AM02" if verb == "reject" else None
        path = f"/sandbox/payouts/{payout['id']}/{verb}"
        await self.control(
            "force", payout["account"], path, body, payout=payout["id"], status=status, code=code
        )

    async def payout_back(self) -> None:
        payout = self.pick(self.world.payouts)
        if payout is None or payout["word"] == "refund":
            return
        left = payout["amount"] - self.world.given_back.get(payout["id"], 0)
        if left <= 0:
            return
        cents = self.rng.choice((left, self.rng.randint(1, left)))
        self.world.given_back[payout["id"]] = (
            payout["amount"] - left + cents
        )  # also if it is refused or unclear
        body = {"amountCents": str(cents), "notify": self.rng.random() < TOLD}
        attempt = await self.control(
            "give back", payout["account"], f"/sandbox/payouts/{payout['id']}/refund", body
        )
        if attempt.answer is not None and attempt.answer.status != 200:
            self.world.given_back[payout["id"]] -= cents

    # --- looking, repeating, disturbing -------------------------------------------------------------

    async def read_payout(self) -> None:
        payout = self.pick(self.world.payouts)
        if payout is None:
            return
        began = time.monotonic()
        reply = await self.world.service.get(
            f"/v1/payouts/{payout['id']}", self.world.keys[payout["account"]]
        )
        if reply.status != 200:
            self.world.history.surprises.append(f"payout {payout['id']}: {reply.status} {reply.body}")
            return
        look = (began, time.monotonic(), reply.body["status"])
        self.world.history.reads.setdefault(payout["id"], []).append(look)

    async def read_statement(self) -> None:
        """A page read while money moves is right in itself: each line follows from the one before it."""
        terms = self.rng.choice(self.world.accounts)
        page = (
            await self.world.service.get(f"/v1/statement?limit={self.rng.randint(1, 60)}", terms.api_key)
        ).body
        lines = [entry for item in page["movements"] for entry in item["entries"][::-1]]
        after = page["balance"]
        for line in lines:
            if line["balanceAfter"] != after:
                self.world.history.surprises.append(
                    f"{terms.id}: {line} where {after} was due, while money moved"
                )
                return
            after = str(int(line["balanceAfter"]) - int(line["amount"]))

    async def repeat(self) -> None:
        """A client that asks again under a key that was answered long ago."""
        known = list(self.world.history.attempts.values())[-400:]
        if known:
            attempt = self.rng.choice(known)
            await self.ask(attempt)
            self.learn(attempt)

    async def reuse_key(self) -> None:
        """The same key for another amount is a conflict and does nothing."""
        known = [
            a for a in self.world.history.of("payout") if a.answer is not None and a.answer.status == 201
        ]
        if not known:
            return
        first = self.rng.choice(known[-200:])
        body = {**first.body, "amountCents": str(int(first.body["amountCents"]) + 1)}
        reply = await self.world.service.post(
            first.path, self.world.keys[first.account], body, idempotency_key=first.key
        )
        if (reply.status, reply.code if reply.status >= 400 else "") != (409, "idempotency_conflict"):
            self.world.history.surprises.append(
                f"key {first.key} with another amount: {reply.status} {reply.body}"
            )

    async def resolve(self) -> None:
        """Ask again what got no clear answer."""
        open_ = self.world.history.unresolved()
        if open_:
            attempt = self.rng.choice(open_)
            await self.ask(attempt)
            self.learn(attempt)

    async def move_clock(self) -> None:
        seconds = self.rng.choice((1, 3, 10, 35, 61, 700, 4_000, 30_000, 90_000))
        async with self.world.control:
            if self.world.offset_s + seconds < CLOCK_BUDGET_S:
                await advance(self.world, seconds)

    async def change_faults(self) -> None:
        if not self.world.faults:
            return
        async with self.world.control:
            if self.rng.random() < 0.06:
                await self._stall()
            await set_faults(self.world, self.rng.choice(FAULTS))

    async def _stall(self) -> None:
        """A provider so slow that repeated requests give up waiting for the first."""
        await set_faults(self.world, {"latencyMs": STALL_MS})
        terms = self.rng.choice(self.world.accounts)
        body = {"pixKey": "52998224725", "pixKeyType": "CPF", "amountCents": str(self.cents())}
        key = f"k{self.rng.getrandbits(96):024x}"
        attempt = self.world.history.attempts[key] = Attempt("payout", terms.id, "/v1/payouts", body, key)
        await asyncio.gather(*(self.ask(attempt) for _ in range(3)))
        self.learn(attempt)
