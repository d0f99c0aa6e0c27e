"""Certificate authorities that this machine was told to trust, with a place for each in the node."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

# The folder in the node. Not the paths of this machine: there the node's own ca-certificates package works.
NODE_FOLDER = PurePosixPath("/etc/host-certificates")
VARIABLES = ("CURL_CA_BUNDLE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


class Certificates:
    """Collects files of this machine; each gets one path in the node."""

    def __init__(self) -> None:
        self._node_paths: dict[str, str] = {}

    def place(self, host_path: str) -> str:
        """The path in the node of a file of this machine."""
        if host_path not in self._node_paths:
            name = f"{len(self._node_paths)}-{Path(host_path).name}"
            self._node_paths[host_path] = str(NODE_FOLDER / name)
        return self._node_paths[host_path]

    def mounts(self) -> list[str]:
        """`host path:node path` of each file."""
        return [f"{host}:{node}" for host, node in self._node_paths.items()]


def environment(variables: Mapping[str, str], certificates: Certificates) -> dict[str, str]:
    """Those of the usual variables that name an existing file, with its path in the node."""
    return {
        name: certificates.place(variables[name])
        for name in VARIABLES
        if name in variables and Path(variables[name]).is_file()
    }
