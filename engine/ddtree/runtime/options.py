"""Command-line options shared by the subcommands that run the engine; their defaults are EngineConfig's."""

import argparse
from pathlib import Path

from ddtree.errors import UserError
from ddtree.runtime.types import DTYPES, EngineConfig, Mode


def add_engine_options(parser: argparse.ArgumentParser, *, drafter_required: bool) -> None:
    defaults = EngineConfig(Path())
    group = parser.add_argument_group("engine")
    group.add_argument("--model", type=Path, required=True, metavar="DIR", help="folder of the target model")
    group.add_argument(
        "--drafter",
        type=Path,
        required=drafter_required,
        metavar="DIR",
        help="folder of its DFlash drafter" + ("" if drafter_required else "; needed for the modes chain and tree"),
    )
    group.add_argument("--budget", type=int, default=defaults.budget, help="drafted tokens a round (%(default)s)")
    group.add_argument("--topk", type=int, default=defaults.topk, help="candidates a depth (%(default)s)")
    group.add_argument("--depth", type=int, default=defaults.depth, help="deepest drafted token used (%(default)s)")
    group.add_argument("--block", type=int, help="rows a draft block (default: the drafter's)")
    group.add_argument("--window", type=int, metavar="TOKENS", help="context the drafter sees (default: its own)")
    group.add_argument("--dtype", choices=DTYPES, default=defaults.dtype, help="(%(default)s)")
    group.add_argument("--device", default=defaults.device, help="cpu, cuda, cuda:1, … (%(default)s)")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads of torch (default: torch's own choice)")
    group.add_argument("--max-context", type=int, metavar="TOKENS", help="prompt and reply (default: the model's)")


def engine_config(args: argparse.Namespace, mode: Mode) -> EngineConfig:
    return EngineConfig(
        model_path=args.model,
        drafter_path=args.drafter,
        mode=mode,
        budget=args.budget,
        topk=args.topk,
        depth=args.depth,
        block=args.block,
        window=args.window,
        dtype=args.dtype,
        device=args.device,
        max_context=args.max_context,
    )


def apply_threads(args: argparse.Namespace) -> None:
    """Raises UserError for a number torch would not take."""
    if args.threads is None:
        return
    if args.threads < 1:
        raise UserError(f"--threads is {args.threads}; it must be at least 1")
    import torch

    torch.set_num_threads(args.threads)
