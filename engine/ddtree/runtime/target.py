"""The target model through transformers: N rows and a key/value cache in, logits and tapped features out."""

import contextlib
import inspect
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from ddtree.errors import UserError
from ddtree.runtime import attention
from ddtree.runtime.kv_cache import KvCache
from ddtree.runtime.model_folder import check_model_folder


@dataclass(frozen=True, eq=False)
class Forward:
    """logits [R, V] of the rows asked for; taps [N, n·H] in tap order, None where no layer is tapped."""

    logits: torch.Tensor
    taps: torch.Tensor | None


class Target:
    """One sequence at a time. `tap_layers` chooses the layers whose outputs a forward returns."""

    def __init__(self, model: transformers.PreTrainedModel) -> None:
        self.model = model.eval().requires_grad_(False)
        self.config = model.config.get_text_config()
        refuse_partial_attention(self.config)
        self.device = model.device
        self.embedding: torch.Tensor = model.get_input_embeddings().weight  # [V, H]
        # Renamed from past_key_values in transformers 5.2x.
        self._cache_argument = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        self._tap_layers: tuple[int, ...] = ()
        self._taps: dict[int, torch.Tensor] = {}
        self._taps_wanted = False

    @property
    def lm_head(self) -> torch.nn.Module:
        """hidden [R, H] → logits [R, V]."""
        return self.model.get_output_embeddings()

    @property
    def num_layers(self) -> int:
        return self.config.num_hidden_layers

    def new_cache(self, capacity: int) -> KvCache:
        return KvCache(self.num_layers, capacity)

    def tap_layers(self, layer_ids: tuple[int, ...]) -> None:
        """From now on forwards can return the outputs of these layers, that is `hidden_states[i + 1]` each."""
        self._tap_layers = layer_ids
        layers = self.model.get_decoder().layers
        for layer_id in layer_ids:
            layers[layer_id].register_forward_hook(self._hook(layer_id))

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        cache: KvCache,
        *,
        visible: torch.Tensor | None = None,
        last_row_only: bool = False,
        with_taps: bool = True,
    ) -> Forward:
        """token_ids, positions int64 [N]; their keys and values go into the cache's window.

        visible, bool [N, N]: which rows of the window each row sees; all rows see all committed tokens. None: causal,
        for a prefill into an empty cache or a single row.
        """
        mask = None
        if visible is not None:
            mask = self.embedding.new_zeros(1, 1, len(token_ids), cache.length + len(token_ids))
            mask[0, 0, :, cache.length :].masked_fill_(~visible, float("-inf"))
        self._taps_wanted = with_taps and bool(self._tap_layers)
        arguments = {self._cache_argument: cache, "logits_to_keep": 1 if last_row_only else 0}
        out = self.model(
            input_ids=token_ids[None],
            position_ids=positions[None],
            attention_mask=mask,
            use_cache=True,
            return_dict=True,
            **arguments,
        )
        taps = torch.cat([self._taps.pop(i) for i in self._tap_layers], dim=-1) if self._taps_wanted else None
        return Forward(out.logits[0], taps)

    def _hook(self, layer_id: int):
        def keep(_module, _inputs, output):
            if self._taps_wanted:
                self._taps[layer_id] = (output[0] if isinstance(output, tuple) else output)[0]

        return keep


def load_target(folder: Path, dtype: torch.dtype, device: torch.device) -> Target:
    """Raises UserError if the folder is incomplete or transformers cannot make a causal language model of it."""
    check_model_folder(folder)
    try:
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, attn_implementation=attention.register(), output_loading_info=True
        )
    except (ValueError, OSError, KeyError, ImportError, RuntimeError) as error:
        raise UserError(f"transformers {transformers.__version__} cannot load {folder}: {_reason(error)}") from error
    if missing := sorted(info["missing_keys"]):  # transformers would go on with random numbers
        raise UserError(f"{folder}: no shard holds tensor {missing[0]} ({len(missing)} in all); fetch the model again")
    return Target(model.to(device))


def read_target_config(folder: Path) -> transformers.PretrainedConfig:
    """The language model's part of config.json. Raises UserError for what the engine cannot decode."""
    try:
        config = transformers.AutoConfig.from_pretrained(folder).get_text_config()
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise UserError(f"transformers {transformers.__version__} cannot read {folder}: {_reason(error)}") from error
    refuse_partial_attention(config)
    return config


def load_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    """Raises UserError if the folder holds no tokenizer."""
    try:
        return transformers.AutoTokenizer.from_pretrained(folder)
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise UserError(
            f"{folder}: the tokenizer cannot be loaded ({_reason(error)}); fetch the model again"
        ) from error


def eos_token_ids(
    model: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerBase
) -> frozenset[int]:
    """Tokens that end a reply: the generation config's, else the model's or the tokenizer's."""
    for source in (getattr(model, "generation_config", None), model.config.get_text_config(), tokenizer):
        value = getattr(source, "eos_token_id", None)
        if value is not None:
            return frozenset(value if isinstance(value, list | tuple) else [value])
    return frozenset()


def refuse_partial_attention(config: transformers.PretrainedConfig) -> None:
    """Raises UserError for models with sliding-window or linear layers: their caches cannot take back rejected rows."""
    kinds = set(getattr(config, "layer_types", None) or [])
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True) and not kinds:
        kinds = {"sliding_attention"}
    if other := sorted(kinds - {"full_attention"}):
        raise UserError(
            f"model type {config.model_type} has {', '.join(other)} layers; "
            "the embedded engine decodes models with full attention in every layer"
        )


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def quiet_loading(show: bool):
    """transformers' progress bars only where somebody looks at them."""
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    if not show:
        bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
