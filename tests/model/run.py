"""Campaigns: `python -m tests.model.run --seed S --steps N --workers W [--faults]`."""

import argparse
import asyncio
import sys

from tests.model.checker import Verdict, run
from tests.support.service import Service


async def campaign(seed: str, steps: int, workers: int, *, faults: bool, pauses: int) -> Verdict:
    """Run one seed on a service of its own."""
    service = Service()
    service.start()
    try:
        verdict = await run(service, seed=seed, steps=steps, workers=workers, faults=faults, pauses=pauses)
    except BaseException:
        print(service.log()[-3_000:])
        raise
    finally:
        await service.close()
        service.stop()
    if not verdict.disagreements:
        service.destroy()
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="1", help="a seed, or several by comma")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--pauses", type=int, default=3)
    parser.add_argument("--faults", action="store_true")
    given = parser.parse_args()
    failed = 0
    for seed in given.seed.split(","):
        verdict = asyncio.run(
            campaign(seed, given.steps, given.workers, faults=given.faults, pauses=given.pauses)
        )
        words = "agreement" if not verdict.disagreements else f"{len(verdict.disagreements)} DISAGREEMENTS"
        print(
            f"seed {seed}: {verdict.steps} steps in {verdict.took_s:.0f} s, {verdict.figures}: {words}",
            flush=True,
        )
        for text in verdict.disagreements[:40]:
            print(f"  {text}")
        if verdict.history:
            failed += 1
            print(f"  history: {verdict.history}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
