"""`ddtree compare`: plain decoding, DFlash chain and DDTree side by side on a few prompts."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ddtree.errors import UserError
from ddtree.runtime.comparison import DEFAULT_PROMPTS, Run, as_json, compare_modes, format_table
from ddtree.runtime.options import add_engine_options, apply_threads, engine_config
from ddtree.runtime.types import SamplingParams

DESCRIPTION = """\
Decodes each prompt greedily in the modes ar (plain), chain (DFlash) and tree (DDTree), one after the other, and prints
a table. Tokens/s and speed-up are those of decoding, without the prompt's prefill. In float32 the three texts must be
the same; if they are not, the exit status is 1.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="plain, chain and tree decoding side by side",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_engine_options(parser, drafter_required=True)
    add_prompt_options(parser)
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N", help="a prompt (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and token ids there as well")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    prompts = read_prompts(args.prompt, args.prompt_file)
    apply_threads(args)
    from ddtree.runtime.engine import Engine
    from ddtree.runtime.progress import StatusLine
    from ddtree.runtime.prompting import chat_prompt_ids

    engine = Engine.load(engine_config(args, "tree"))
    prompt_ids = {name: chat_prompt_ids(engine.tokenizer, text) for name, text in prompts.items()}
    with StatusLine(sys.stderr) as status:
        runs = compare_modes(engine, prompt_ids, SamplingParams(max_tokens=args.max_tokens), status.show)
    print(format_table(runs))
    conditions = _conditions(args)
    summary = "greedy, {dtype}, {device}, {threads} threads; budget {budget}, topk {topk}, depth {depth}, block {block}"
    print(summary.format(**conditions))
    if args.json is not None:
        _write_json(args.json, as_json(runs, conditions))
    different = report_differences(runs)
    return 1 if different and args.dtype == "float32" else 0


def report_differences(runs: list[Run]) -> bool:
    """Names on stderr the runs whose text is not that of plain decoding; True if there is one."""
    different = [f"{run.prompt}/{run.mode}" for run in runs if not run.identical]
    if different:
        print(f"ddtree: the text differs from plain decoding: {', '.join(different)}", file=sys.stderr)
    return bool(different)


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """The options that `read_prompts` reads."""
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="a prompt, through the chat template; may be repeated (default: one chat and one coding prompt)",
    )
    parser.add_argument("--prompt-file", type=Path, metavar="FILE", help='more prompts: JSON, {"name": "text", …}')


def read_prompts(pairs: list[str], file: Path | None) -> dict[str, str]:
    """Prompts by name, those of the file first; the default ones if there are none. Raises UserError."""
    prompts: dict[str, str] = {}
    if file is not None:
        try:
            prompts = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise UserError(
                f'--prompt-file {file} cannot be read ({error}); it must hold {{"name": "text"}}'
            ) from error
        if not isinstance(prompts, dict) or not all(isinstance(text, str) and text for text in prompts.values()):
            raise UserError(
                f'--prompt-file {file} must hold a JSON object {{"name": "text"}} with texts that are not empty'
            )
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not (name and separator and text):
            raise UserError(f"--prompt is {pair!r}; it must be NAME=TEXT, for example chat='Name three colours.'")
        if name in prompts:
            raise UserError(f"--prompt {name}: there are two prompts of that name; rename one")
        prompts[name] = text
    return prompts or dict(DEFAULT_PROMPTS)


def _conditions(args: argparse.Namespace) -> dict[str, Any]:
    import torch
    import transformers

    return {
        "model": args.model.resolve().name,
        "drafter": args.drafter.resolve().name,
        "budget": args.budget,
        "topk": args.topk,
        "depth": args.depth,
        "block": args.block or "of the drafter",
        "dtype": args.dtype,
        "device": args.device,
        "threads": torch.get_num_threads(),
        "max_tokens": args.max_tokens,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _write_json(path: Path, values: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"--json {path} cannot be written: {error}") from error
