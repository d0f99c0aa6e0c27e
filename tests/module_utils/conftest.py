"""Makes the fixtures of tests/support available here: a hub, a repository in it, a model folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

from weights_fixtures import dest, files, hub, repository, silent_endpoint  # noqa: F401
