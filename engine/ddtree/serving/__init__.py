"""The OpenAI-compatible HTTP server of the embedded engine: `ddtree serve`."""
