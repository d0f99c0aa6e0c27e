"""The embedded engine: one sequence at a time, plain, chain or tree decoding. `types` imports no torch."""
