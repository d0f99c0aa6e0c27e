#!/usr/bin/env python3
"""Installs the collections of requirements.yml below .ansible/collections, where ansible.cfg looks for them.

They are taken out of PyPI's `ansible` package, which carries them all (collections.lock pins it by hash),
so that Galaxy need not be reached; `--from galaxy` takes the ordinary way. What is there in the right version stays.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
REQUIREMENTS = REPOSITORY / "requirements.yml"
# One line for pip, with hashes.
PACKAGE_LOCK = Path(__file__).with_name("collections.lock")
DESTINATION = REPOSITORY / ".ansible" / "collections"
# The package is only unpacked, never run, so it need not fit the Python that runs this.
PACKAGE_PYTHON = "3.13"


def wanted_versions(requirements: Path) -> dict[str, str]:
    """Collection name → exact version."""
    collections = yaml.safe_load(requirements.read_text())["collections"]
    return {collection["name"]: str(collection["version"]) for collection in collections}


def member_prefix(collection: str) -> str:
    return f"ansible_collections/{collection.replace('.', '/')}/"


def manifest_version(manifest: bytes) -> str:
    return json.loads(manifest)["collection_info"]["version"]


def installed_version(destination: Path, collection: str) -> str | None:
    manifest = destination / member_prefix(collection) / "MANIFEST.json"
    return manifest_version(manifest.read_bytes()) if manifest.is_file() else None


def unpack(package: Path, wanted: dict[str, str], destination: Path) -> None:
    """Unpacks the wanted collections. Raises SystemExit when the package carries another version of one."""
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
        for collection, version in wanted.items():
            prefix = member_prefix(collection)
            if f"{prefix}MANIFEST.json" not in names:
                sys.exit(f"{package.name} carries no {collection}; correct {REQUIREMENTS.name}")
            carried = manifest_version(archive.read(f"{prefix}MANIFEST.json"))
            if carried != version:
                sys.exit(
                    f"{package.name} carries {collection} {carried}, {REQUIREMENTS.name} wants {version}; "
                    f"change one of {REQUIREMENTS.name} and {PACKAGE_LOCK.name}"
                )
        for collection in wanted:
            members = [name for name in names if name.startswith(member_prefix(collection))]
            archive.extractall(destination, members)


def install_from_package(wanted: dict[str, str], destination: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", PACKAGE_PYTHON, "--require-hashes"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "--requirement", str(PACKAGE_LOCK), "--dest", folder], check=True)
        (package,) = Path(folder).glob("*.whl")
        unpack(package, wanted, destination)


def install_from_galaxy(destination: Path) -> None:
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = [str(galaxy), "collection", "install", "--requirements-file", str(REQUIREMENTS)]
    subprocess.run([*command, "--collections-path", str(destination)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", choices=["pypi", "galaxy"], default="pypi")
    source = parser.parse_args().source
    wanted = wanted_versions(REQUIREMENTS)
    missing = {name: version for name, version in wanted.items() if installed_version(DESTINATION, name) != version}
    if missing:
        DESTINATION.mkdir(parents=True, exist_ok=True)
        if source == "pypi":
            install_from_package(missing, DESTINATION)
        else:
            install_from_galaxy(DESTINATION)
    for name, version in wanted.items():
        print(f"{name} {version} {'installed' if name in missing else 'present'}")


if __name__ == "__main__":
    main()
