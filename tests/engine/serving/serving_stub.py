"""A stand-in for the engine: it repeats the prompt, token by token, over a real byte-level tokenizer.

A completion's reply is its prompt, a chat's reply is the last user message, so that a test writes the reply it wants.
Prompts that begin with one of the words below make the engine misbehave.
Run as a program it is `ddtree serve` around this engine, for tests that need a process of their own.
"""

import sys
import threading
import time
from functools import cache

from ddtree.errors import UserError
from ddtree.runtime.types import Step

FOREVER = "forever "  # repeats itself without end
EXPLODE = "explode "  # raises at the second step
REFUSE = "refuse "  # raises UserError
DIE = "die "  # raises at the second step, and at every step ever after
NO_REASON = "noreason "  # ends without a finish reason

END, START = "<|im_end|>", "<|im_start|>"
CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "forever explode refuse hello world",
    "Grüße, 世界 – καλημέρα",
] * 20
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' and loop.first %}"
    "{{ raise_exception('the assistant cannot begin') }}"
    "{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOKENS_A_STEP = {"ar": 1, "chain": 3, "tree": 4}


@cache
def make_tokenizer():
    """Byte-level BPE: every byte is a token, so a character outside the corpus is spread over several tokens."""
    # Imported here: the processes that never load an engine start faster.
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)
    fast.chat_template = CHAT_TEMPLATE
    return fast


class StubEngine:
    """Same interface as ddtree.runtime.engine.Engine. `gate` closed: no step is made."""

    def __init__(self, max_context: int = 100_000) -> None:
        self.tokenizer = make_tokenizer()
        self.eos_token_ids = frozenset({self.tokenizer.eos_token_id})
        self.max_context = max_context
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False
        self.started: list[str] = []  # prompts, in the order in which they reached the engine
        self.closed = 0  # generations that have ended, however they did
        self.calls: list[tuple] = []

    def generate(self, prompt_ids, params, mode=None):
        mode = mode or "tree"
        prompt = self.tokenizer.decode(prompt_ids)
        self.calls.append((list(prompt_ids), params, mode))
        self.started.append(prompt)
        try:
            yield from self._steps(prompt_ids, prompt, params, mode)
        finally:
            self.closed += 1

    def _steps(self, prompt_ids, prompt, params, mode):
        if self.broken:
            raise RuntimeError("the device has fallen off the bus")
        if prompt.startswith(REFUSE):
            raise UserError("this engine does not do that")
        reply = self._reply(prompt_ids)
        endless = prompt.startswith(FOREVER) or params.ignore_eos
        made, size = 0, 1
        while True:
            self.gate.wait()
            if prompt.startswith((EXPLODE, DIE)) and made:
                self.broken = prompt.startswith(DIE)
                raise RuntimeError("boom")
            tokens = tuple(reply[(made + i) % len(reply)] for i in range(min(size, params.max_tokens - made)))
            if not endless and made + len(tokens) >= len(reply):
                tokens = tokens[: len(reply) - made]
            made += len(tokens)
            reason = None
            if tokens and tokens[-1] in self.eos_token_ids and not endless:
                reason = "stop"
            elif made == params.max_tokens:
                reason = "length"
            if prompt.startswith(NO_REASON) and made > 1:
                return
            yield Step(token_ids=tokens, accepted=len(tokens) - 1, drafted=size - 1, finish_reason=reason)
            if reason:
                return
            size = TOKENS_A_STEP[mode]
            if endless:
                time.sleep(0.001)

    def _reply(self, prompt_ids):
        start = self.tokenizer.convert_tokens_to_ids(START)
        ids = list(prompt_ids)
        if start in ids:  # a chat: the last complete message, without its role line and its end
            last = len(ids) - 1 - ids[::-1].index(start)
            before = len(ids[:last]) - 1 - ids[:last][::-1].index(start)
            text = self.tokenizer.decode(ids[before + 1 : last])
            content = text.split("\n", 1)[1].removesuffix("\n").removesuffix(END)
            ids = self.tokenizer.encode(content, add_special_tokens=False)
        return [*ids, self.tokenizer.eos_token_id]


def main(argv: list[str]) -> int:
    """argv: port, drain_s, and how loading goes: "ok", "hang", or "fail"."""
    from ddtree.cli import main as cli_main
    from ddtree.serving import command

    folder, port, drain_s, loading = argv

    def load(*_):
        if loading == "hang":
            threading.Event().wait()
        if loading == "fail":
            raise UserError("the drafter was trained for another target; name its own")
        return StubEngine()

    command._load = load
    return cli_main(["serve", "--model", folder, "--port", port, "--drain-seconds", drain_s, "--max-queue", "4"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
