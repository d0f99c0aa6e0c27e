"""Models for the engine's tests: the real demo model with its drafter, and tiny random ones that load in no time."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def drafter_folder() -> Path:
    """The drafter that this project ships."""
    return REPOSITORY / "models" / "smollm2-135m-dflash"


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """Folder of SmolLM2-135M-Instruct, built once and kept in the repository's ignored cache."""
    from ddtree.demo.model import REPO_ID, build_demo_model

    cache = REPOSITORY / ".cache" / "demo-models"
    return build_demo_model(cache / REPO_ID, cache / ".wheels")


@pytest.fixture(scope="session")
def real(demo_model, drafter_folder):
    """Kit of the demo model and its drafter."""
    from engine_kit import Kit

    from ddtree.runtime.loading import load_parts
    from ddtree.runtime.types import EngineConfig

    config = EngineConfig(demo_model, drafter_folder)
    return Kit(config, load_parts(config))


@pytest.fixture(scope="session")
def plain_model(demo_model):
    """The demo model in transformers alone, as the independent reference."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(demo_model, dtype=torch.float32).eval()


@pytest.fixture(scope="session")
def tiny_kit(tmp_path_factory):
    """tiny_kit(family, **drafter_config_changes) → Kit of a random target and a random drafter."""
    from engine_kit import Kit, write_tiny_drafter, write_tiny_target

    from ddtree.runtime.loading import load_parts
    from ddtree.runtime.types import EngineConfig

    made = {}

    def make(family="llama", vocab=13, **changes):
        key = (family, vocab, repr(sorted(changes.items())))
        if key not in made:
            root = tmp_path_factory.mktemp("tiny")
            target = write_tiny_target(root / "target", family, vocab=vocab)
            config = EngineConfig(target, write_tiny_drafter(root / "drafter", target, **changes))
            made[key] = Kit(config, load_parts(config))
        return made[key]

    return make
