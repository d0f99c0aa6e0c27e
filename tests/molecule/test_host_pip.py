"""pip's configuration of this machine, as variables and mounts of a node."""

import os
import subprocess
import sys

import host_pip
import pytest

LISTING = r"""
:env:.find-links='/from/env'
:env:.timeout='3'
freeze.timeout='9'
global.extra-index-url='https://one.invalid/simple\nhttps://two.invalid/simple'
global.find-links='/from/file'
global.cert='/etc/ca.pem'
global.cache-dir='/home/someone/.cache'
install.timeout='2'
install.pre='true'
"""


def test_environment_wins_over_install_over_global():
    settings = host_pip.parse_settings(LISTING)
    assert settings["find-links"] == "/from/env"
    assert settings["timeout"] == "3"
    assert settings["pre"] == "true"


def test_places_of_this_machine_and_certificates_are_left_out():
    names = host_pip.environment(host_pip.parse_settings(LISTING))
    assert names["PIP_EXTRA_INDEX_URL"] == "https://one.invalid/simple https://two.invalid/simple"
    assert "PIP_CACHE_DIR" not in names
    assert "PIP_CERT" not in names


def test_pip_reads_the_same_from_the_variables_as_from_the_files(tmp_path):
    """The real pip: its configuration file here, our variables there, one meaning."""
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nfind-links =\n    /a folder\n    /b\nindex-url = https://user:p%%40ss@index.invalid/simple\n"
        "[install]\nno-binary = one,two\n"
    )
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    # With PIP_CONFIG_FILE=os.devnull pip reads no file at all.
    listing = "import sys; sys.argv[1:] = ['config', 'list']; from pip._internal.cli.main import main; main()"

    def settings(extra: dict[str, str]) -> dict[str, str]:
        command = [sys.executable, "-c", listing]
        done = subprocess.run(command, env=bare | extra, capture_output=True, text=True, check=True)
        parsed = host_pip.parse_settings(done.stdout)
        return {key: " ".join(value.split()) for key, value in parsed.items() if key != "config-file"}

    isolated = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "HOME": str(tmp_path)}
    from_file = settings(isolated | {"PIP_CONFIG_FILE": str(config)})
    assert from_file["no-binary"] == "one,two"
    from_variables = settings(isolated | {"PIP_CONFIG_FILE": os.devnull} | host_pip.environment(from_file))
    for key, value in from_file.items():
        if key not in host_pip.LOCAL_KEYS | host_pip.CERTIFICATE_KEYS:
            assert from_variables[key] == value


def test_only_existing_paths_are_mounted_and_none_within_another(tmp_path):
    wheels = tmp_path / "wheels"
    (wheels / "inner").mkdir(parents=True)
    settings = {
        "find-links": f"{wheels} {wheels / 'inner'} {tmp_path / 'absent'} https://net.invalid/",
        "extra-index-url": "https://index.invalid/simple",
    }
    assert host_pip.mounts(settings) == [str(wheels)]


@pytest.mark.parametrize(("url", "mounted"), [("index/simple", "index"), ("flat", "flat")])
def test_a_folder_index_is_mounted_with_the_files_beside_it(tmp_path, url, mounted):
    (tmp_path / url).mkdir(parents=True)
    assert host_pip.mounts({"extra-index-url": (tmp_path / url).as_uri()}) == [str(tmp_path / mounted)]
