"""The scripts below molecule/tools are imported and run as they are."""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "molecule" / "tools"
sys.path.append(str(TOOLS))


@pytest.fixture
def tools() -> Path:
    return TOOLS
