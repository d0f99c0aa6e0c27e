"""Collections out of a package that carries them."""

import json
import zipfile

import install_collections
import pytest


@pytest.fixture
def package(tmp_path):
    """A wheel with two collections."""
    path = tmp_path / "ansible-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, version in {"one": "1.2.3", "two": "4.0.0"}.items():
            prefix = f"ansible_collections/acme/{name}/"
            archive.writestr(f"{prefix}MANIFEST.json", json.dumps({"collection_info": {"version": version}}))
            archive.writestr(f"{prefix}plugins/connection/{name}.py", "")
    return path


def test_the_wanted_collection_alone_is_unpacked(package, tmp_path):
    install_collections.unpack(package, {"acme.one": "1.2.3"}, tmp_path)
    assert install_collections.installed_version(tmp_path, "acme.one") == "1.2.3"
    assert install_collections.installed_version(tmp_path, "acme.two") is None
    assert (tmp_path / "ansible_collections/acme/one/plugins/connection/one.py").exists()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [({"acme.one": "1.2.4"}, "carries acme.one 1.2.3, .* wants 1.2.4"), ({"acme.on": "1.2.3"}, "carries no acme.on")],
)
def test_another_version_or_collection_is_refused_before_anything_is_unpacked(package, tmp_path, wanted, message):
    with pytest.raises(SystemExit, match=message):
        install_collections.unpack(package, {"acme.two": "4.0.0", **wanted}, tmp_path)
    assert not (tmp_path / "ansible_collections").exists()


def test_requirements_pin_exact_versions():
    for name, version in install_collections.wanted_versions(install_collections.REQUIREMENTS).items():
        assert name.count(".") == 1
        assert version.replace(".", "").isdigit()
