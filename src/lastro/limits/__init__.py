"""Ceilings: money per window of the day, and calls per minute."""
