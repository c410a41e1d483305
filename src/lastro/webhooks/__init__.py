"""Endpoints of clients and the deliveries that carry events to them."""
