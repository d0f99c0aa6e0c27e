"""`ddtree generate`: one prompt, the reply as it comes on stdout, what it took on stderr."""

import argparse
import sys
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from ddtree.runtime.options import add_engine_options, apply_threads, engine_config
from ddtree.runtime.types import MODES, GenerationStats, SamplingParams

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine, Step

EXAMPLES = """\
examples:
  ddtree generate --model models/SmolLM2-135M-Instruct --prompt "Name three colours."
  ddtree generate --model models/SmolLM2-135M-Instruct --drafter models/smollm2-135m-dflash --prompt - < question.txt
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "generate",
        help="decode one prompt and print the reply",
        description="Decodes one prompt. The reply goes to stdout as it is generated, the figures to stderr.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_engine_options(parser, drafter_required=False)
    defaults = SamplingParams()
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="what the user says; - reads it from stdin")
    parser.add_argument("--raw", action="store_true", help="no chat template: the reply continues the prompt")
    parser.add_argument(
        "--mode", choices=MODES, help="plain, DFlash chain or DDTree (default: tree, without a drafter ar)"
    )
    parser.add_argument("--max-tokens", type=int, default=defaults.max_tokens, metavar="N", help="(%(default)s)")
    parser.add_argument("--temperature", type=float, default=defaults.temperature, help="0: greedy (%(default)s)")
    parser.add_argument("--top-p", type=float, default=defaults.top_p, help="(%(default)s)")
    parser.add_argument("--top-k", type=int, default=defaults.top_k, help="0: all tokens (%(default)s)")
    parser.add_argument("--min-p", type=float, default=defaults.min_p, help="(%(default)s)")
    parser.add_argument("--seed", type=int, help="the same text every time, in every mode")
    parser.add_argument("--ignore-eos", action="store_true", help="go on to --max-tokens")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.prompt == "-" else args.prompt
    apply_threads(args)
    from ddtree.runtime.engine import Engine
    from ddtree.runtime.prompting import chat_prompt_ids
    from ddtree.runtime.stats import measured

    mode = args.mode or ("tree" if args.drafter else "ar")
    params = SamplingParams(
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        top_p=args.top_p,
        top_k=args.top_k,
        min_p=args.min_p,
        seed=args.seed,
        ignore_eos=args.ignore_eos,
    )
    engine = Engine.load(engine_config(args, mode))
    prompt_ids = engine.tokenizer.encode(text) if args.raw else chat_prompt_ids(engine.tokenizer, text)
    stats = GenerationStats()
    with closing(engine.generate(prompt_ids, params)) as steps:
        print_as_it_comes(engine, measured(steps, stats))
    print(summary(mode, len(prompt_ids), stats), file=sys.stderr)
    return 0


def print_as_it_comes(engine: "Engine", steps: "Iterable[Step]") -> None:
    """Prints whole characters only: a token may end within one."""
    token_ids: list[int] = []
    printed = ""
    for step in steps:
        token_ids += step.token_ids
        text = engine.tokenizer.decode(token_ids, skip_special_tokens=True)
        if step.finish_reason is not None or not text.endswith("\ufffd"):
            print(text.removeprefix(printed), end="", flush=True)
            printed = text
    print()


def summary(mode: str, prompt_tokens: int, stats: GenerationStats) -> str:
    """One line. Acceptance length counts the target's own token of every round."""
    return (
        f"{mode}: {prompt_tokens} prompt tokens in {stats.prefill_s:.2f} s; "
        f"{stats.tokens} tokens ({stats.finish_reason}), "
        f"{stats.decode_tokens_per_s:.1f} tokens/s, acceptance length {stats.acceptance_length:.2f}, "
        f"{stats.target_forwards} target forwards"
    )
