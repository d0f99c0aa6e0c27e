"""The document that a node is made from."""

import json
import subprocess
import sys

import host_settings


def test_every_certificate_has_one_place_in_the_node_and_a_mount(tmp_path):
    bundle, other = tmp_path / "bundle.pem", tmp_path / "other" / "bundle.pem"
    other.parent.mkdir()
    bundle.write_text("a")
    other.write_text("b")
    variables = {"SSL_CERT_FILE": str(bundle), "PIP_CERT": str(other), "REQUESTS_CA_BUNDLE": str(tmp_path / "absent")}
    document = host_settings.collect(variables, {"cert": str(other)}, [], {}, "bookworm")
    environment = document["environment"]
    mounts = dict(volume.removesuffix(":ro").split(":") for volume in document["volumes"])
    assert mounts == {str(bundle): environment["SSL_CERT_FILE"], str(other): environment["PIP_CERT"]}
    assert len(set(mounts.values())) == 2
    assert "REQUESTS_CA_BUNDLE" not in environment
    assert document["apt_conf"] == [f'Acquire::https::CaInfo "{environment["SSL_CERT_FILE"]}";']


def test_proxies_are_taken_over_in_either_spelling():
    variables = {"https_proxy": "http://proxy.invalid", "NO_PROXY": "127.0.0.1", "HTTP_PROXY": "", "HOME": "/root"}
    environment = host_settings.collect(variables, {}, [], {}, "bookworm")["environment"]
    assert environment == {"https_proxy": "http://proxy.invalid", "NO_PROXY": "127.0.0.1"}


def test_this_machine_can_be_described(tools):
    done = subprocess.run([sys.executable, tools / "host_settings.py"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document.keys() == {"mirror", "apt_sources", "apt_conf", "environment", "volumes"}
    assert all(volume.endswith(":ro") and volume.count(":") == 2 for volume in document["volumes"])
