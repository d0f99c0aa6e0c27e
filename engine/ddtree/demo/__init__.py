"""The demo model: a real small model folder, built from a PyPI package so that no model hub is needed."""
