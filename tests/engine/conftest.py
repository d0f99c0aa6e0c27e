"""The real demo model, for the engine's tests that need one: built on first use, kept in the ignored `.cache/`."""

from pathlib import Path

import pytest
from ddtree.demo.model import REPO_ID, build_demo_model

DEMO_MODELS = Path(__file__).resolve().parents[2] / ".cache" / "demo-models"


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """Folder of SmolLM2-135M-Instruct. Tests that use it carry the mark `model` and leave it as it is."""
    return build_demo_model(DEMO_MODELS / REPO_ID, cache=DEMO_MODELS / ".wheels")
