"""Does this drafter belong to this target? A wrong pair would still decode correctly, and accept almost nothing."""

from pathlib import Path

from ddtree.drafter.config import DrafterConfig
from ddtree.errors import UserError


def require_drafter(mode: str, drafter: object | None) -> None:
    """Raises UserError when a speculative mode is asked of an engine without a drafter. drafter: it, or its folder."""
    if mode != "ar" and drafter is None:
        raise UserError(f"mode {mode} needs a drafter and none was named; name one, or use mode ar (plain decoding)")


def check_pairing(
    drafter: DrafterConfig,
    *,
    hidden_size: int,
    vocab_size: int,
    num_layers: int,
    drafter_path: Path,
    target_path: Path,
) -> None:
    """Compares the drafter with the target's hidden size, vocabulary and number of layers.

    Raises UserError for the first value that does not fit, with both values and the next step.
    """
    pairs = (
        ("hidden_size", drafter.hidden_size, hidden_size),
        ("vocab_size", drafter.vocab_size, vocab_size),
        ("num_target_layers", drafter.num_target_layers, num_layers),
    )
    advice = "use the drafter that was trained for this target, or mode ar"
    for name, wanted, found in pairs:
        if wanted != found:
            raise UserError(
                f"drafter {drafter_path} is made for a target with {name} {wanted}, {target_path} has {found}; {advice}"
            )
    last = drafter.target_layer_ids[-1]
    if last > num_layers - 2:  # hidden_states[num_layers] is taken behind the final norm: no tap
        raise UserError(
            f"drafter {drafter_path} taps layer {last}, {target_path} has {num_layers} layers, "
            f"so that taps end at layer {num_layers - 2}; {advice}"
        )
