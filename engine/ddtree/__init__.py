"""DDTree: tree-speculative decoding with a DFlash drafter, and the tools to serve and measure it."""

__version__ = "0.1.0"
