"""The reference page."""

from typing import Any


def page(document: dict[str, Any]) -> str:
    """Write the page."""
    return f"<!doctype html><title>{document['info']['title']}</title>"
