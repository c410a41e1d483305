"""The benchmark: every figure of docs/explanation/performance.md comes from here."""
