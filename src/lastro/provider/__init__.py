"""The port to the payment provider, and one module for each provider."""
