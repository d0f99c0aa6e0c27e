"""The DFlash drafter: its configuration, its model, and the check that it fits the target."""
