"""`ddtree doctor`: does this environment compute, and does this drafter fit its target? Loads no weights."""

import argparse
import importlib.metadata
import platform
from pathlib import Path

from ddtree.errors import UserError

PACKAGES = ("torch", "transformers", "safetensors", "sglang")


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="check the environment, the device, and whether a drafter fits its target",
        description="Prints versions, computes a small product on the device, and checks --model and its --drafter.",
    )
    parser.add_argument("--device", help="device as torch names it (default: cpu; none is tried with --model alone)")
    parser.add_argument("--model", type=Path, help="folder of the target")
    parser.add_argument("--drafter", type=Path, help="folder of the drafter that is to serve it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    print(f"python {platform.python_version()}")
    for name, version in installed_versions().items():
        print(f"{name} {version}")
    if args.device or args.model is None:
        print(check_device(args.device or "cpu"))
    if args.model is not None:
        print(check_model(args.model))
        if args.drafter is not None:
            print(check_drafter(args.drafter, args.model))
    elif args.drafter is not None:
        raise UserError("--drafter needs --model: name the target that it is to serve")
    return 0


def check_model(folder: Path) -> str:
    """Raises UserError where the folder is not a whole model: config, index, shards, headers."""
    from ddtree.runtime.model_folder import check_model_folder

    shards = check_model_folder(folder)
    return f"model {folder}: whole, {len(shards)} shards"


def check_drafter(folder: Path, target: Path) -> str:
    """Raises UserError where the drafter is not whole or was made for another target.

    Reads config.json itself, not through transformers: a target that only SGLang can load is checked as well.
    """
    from ddtree.drafter.config import read_drafter_config
    from ddtree.drafter.pairing import check_pairing
    from ddtree.json_file import read_json
    from ddtree.runtime.model_folder import check_model_folder

    check_model_folder(folder)
    drafter = read_drafter_config(folder)
    config = read_json(target / "config.json")
    config = config.get("text_config", config)  # multimodal models keep the language model's dimensions there
    try:
        dimensions = (config["hidden_size"], config["vocab_size"], config["num_hidden_layers"])
    except KeyError as error:
        raise UserError(f"{target / 'config.json'} has no {error}; is it a language model?") from error
    hidden_size, vocab_size, num_layers = dimensions
    check_pairing(
        drafter,
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        num_layers=num_layers,
        drafter_path=folder,
        target_path=target,
    )
    return f"drafter {folder}: fits, block {drafter.block_size}, taps {list(drafter.target_layer_ids)}"


def installed_versions() -> dict[str, str]:
    """Versions of the packages that matter and are installed."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def check_device(device: str) -> str:
    """Multiplies two integer-valued matrices on the device and compares with the exact result.

    A wheel without kernels for the device's architecture fails here, in seconds, and not after the model was fetched.
    """
    import torch

    left = torch.arange(64.0).reshape(8, 8)
    try:
        product = (left.to(device) @ left.T.to(device)).cpu()
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {device}: {error}; install a torch built for it, or choose another device") from error
    expected = (left.double() @ left.T.double()).float()
    if not torch.equal(product, expected):
        raise UserError(
            f"device {device}: an 8×8 product is wrong by {(product - expected).abs().max():g}; do not serve on it"
        )
    return f"device {device}: {device_name(device)}, product exact"


def device_name(device: str) -> str:
    """Name and compute capability of a CUDA device; the processor's kind otherwise."""
    import torch

    if torch.device(device).type != "cuda":
        return platform.machine()
    major, minor = torch.cuda.get_device_capability(device)
    return f"{torch.cuda.get_device_name(device)}, compute capability {major}.{minor}"
