"""Reads the small JSON files of a model folder; every fault is a message that names the file and the next step."""

import json
from pathlib import Path
from typing import Any

from ddtree.errors import UserError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises UserError if there is none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.parent}: {path.name} is missing; fetch the model again") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); fetch the file again") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} holds no JSON object; fetch the file again")
    return values
