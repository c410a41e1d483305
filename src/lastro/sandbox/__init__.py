"""The simulated provider: scenarios that follow from the order itself, and what a person forces."""
