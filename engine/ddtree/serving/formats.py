"""The two shapes of a reply, whole and in chunks: `text_completion` and `chat.completion`."""

import json
import time
import uuid
from typing import Any

from ddtree.serving.record import GenerationRecord


def sse(payload: dict[str, Any] | str) -> str:
    """One server-sent event."""
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return f"data: {data}\n\n"


class CompletionFormat:
    """Replies of /v1/completions."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def __init__(self, model: str, include_usage: bool) -> None:
        """include_usage: the stream ends with a chunk that holds the usage, the others say null."""
        self.id = f"{self.prefix}-{uuid.uuid4().hex}"
        self._model = model
        self._created = int(time.time())
        self._include_usage = include_usage

    def whole(self, text: str, reason: str, record: GenerationRecord) -> dict[str, Any]:
        choice = {"index": 0, **self._content(text), "logprobs": None, "finish_reason": reason}
        return {**self._head(self.kind, [choice]), "usage": record.usage(), "ddtree": record.report()}

    def opening(self) -> list[dict[str, Any]]:
        """Chunks before the first text."""
        return []

    def piece(self, text: str) -> dict[str, Any]:
        return self._chunk(self._delta(text), None)

    def closing(self, reason: str, record: GenerationRecord) -> list[dict[str, Any]]:
        """Chunks after the last text; the very last one carries the acceptance report."""
        chunks = [self._chunk(self._delta(None), reason)]
        if self._include_usage:
            chunks.append({**self._head(self.chunk_kind, []), "usage": record.usage()})
        chunks[-1]["ddtree"] = record.report()
        return chunks

    def _content(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def _delta(self, text: str | None) -> dict[str, Any]:
        return {"text": text or ""}

    def _chunk(self, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, **delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._include_usage else {}
        return {**self._head(self.chunk_kind, [choice]), **usage}

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self._created, "model": self._model, "choices": choices}


class ChatFormat(CompletionFormat):
    """Replies of /v1/chat/completions."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def opening(self) -> list[dict[str, Any]]:
        return [self._chunk({"delta": {"role": "assistant", "content": ""}}, None)]

    def _content(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text, "refusal": None}}

    def _delta(self, text: str | None) -> dict[str, Any]:
        return {"delta": {} if text is None else {"content": text}}
