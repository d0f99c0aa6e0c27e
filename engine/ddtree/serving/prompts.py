"""From a request's text or messages to prompt token ids."""

import copy
import threading
from typing import Any

from ddtree.serving.errors import ApiError
from ddtree.serving.protocol import ChatRequest, CompletionRequest, GenerationRequest


class PromptEncoder:
    """Encodes in any thread, one request at a time.

    It has a tokenizer of its own: the engine's thread decodes with the original at the same moment, and the Rust
    tokenizers refuse to be read while a call in another thread adjusts their settings.
    """

    def __init__(self, tokenizer: Any) -> None:
        """tokenizer: a transformers fast tokenizer."""
        self._tokenizer = copy.deepcopy(tokenizer)
        self._lock = threading.Lock()

    def encode(self, request: GenerationRequest) -> list[int]:
        """The prompt's token ids, at least one. Raises ApiError (400) for what cannot be a prompt of this model."""
        with self._lock:
            if isinstance(request, ChatRequest):
                prompt_ids = self._encode_chat(request)
            else:
                assert isinstance(request, CompletionRequest)
                prompt_ids = self._encode_prompt(request.prompt)
        if not prompt_ids:
            raise ApiError(400, "'prompt' is empty: it must hold at least one token", param="prompt")
        return prompt_ids

    def _encode_prompt(self, prompt: str | list[int]) -> list[int]:
        if isinstance(prompt, str):
            return list(self._tokenizer.encode(prompt))
        vocabulary = len(self._tokenizer)
        for position, token_id in enumerate(prompt):
            if token_id >= vocabulary:
                message = f"'prompt[{position}]' = {token_id} is no token id: the vocabulary has {vocabulary} tokens"
                raise ApiError(400, message, param="prompt", code="invalid_value")
        return prompt

    def _encode_chat(self, request: ChatRequest) -> list[int]:
        if not getattr(self._tokenizer, "chat_template", None):
            message = "this model has no chat template; use /v1/completions"
            raise ApiError(400, message, param="messages", code="no_chat_template")
        messages = [message.model_dump() for message in request.messages]
        try:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates raise for orders of roles that they do not know
            message = f"the model's chat template refuses these messages: {error}"
            raise ApiError(400, message, param="messages", code="invalid_value") from None
        # The template writes the special tokens itself.
        return list(self._tokenizer.encode(text, add_special_tokens=False))
