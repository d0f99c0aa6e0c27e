"""Names from a hub cannot leave the model folder, and the state folder is out of their reach."""

import os
import stat

import pytest
from ansible.module_utils.model_folder import ModelFolder, make_folder, name_problem, names_problem
from ansible.module_utils.provision_error import ProvisionError


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/..",
        "./x",
        "a//b",
        "a/",
        "a\\b",
        "..\\x",
        "a\0b",
        "a\nb",
        ".ddtree/manifest.json",
        ".DDTree/x",
        ".ddtree",
        "x" * 216,
        "é" * 110,
        "a\ud800",
        None,
        7,
    ],
)
def test_a_dangerous_name_is_refused(name):
    assert name_problem(name)


@pytest.mark.parametrize(
    "name",
    ["config.json", "a/b/c.bin", "..x", "x..", ".gitattributes", "a b", "é.txt", "%2e%2e", "a/.ddtree/b", "x" * 215],
)
def test_an_ordinary_name_is_taken(name):
    assert name_problem(name) is None


def test_names_that_exclude_each_other():
    assert "twice" in names_problem(["a", "b", "a"])
    assert "folder" in names_problem(["a/b", "a"])
    assert "folder" in names_problem(["a", "a/b/c"])
    assert names_problem(["a/b", "a/c", "ab"]) is None


def test_a_folder_that_is_a_link_to_elsewhere_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "sub").symlink_to(tmp_path / "elsewhere")
    folder = ModelFolder(tmp_path / "model")
    with pytest.raises(ProvisionError, match=r"sub/x.*is a link.*remove the link"):
        folder.final_path("sub/x")
    assert folder.final_path("other/x") == str(tmp_path / "model" / "other" / "x")


def test_a_model_folder_that_is_itself_behind_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "models").symlink_to(tmp_path / "disk")
    folder = ModelFolder(tmp_path / "models" / "org")
    folder.create()
    assert folder.final_path("a/b") == str(tmp_path / "models" / "org" / "a" / "b")


def test_extra_files_leave_the_state_folder_out(tmp_path):
    folder = ModelFolder(tmp_path)
    folder.create()
    for name in ("a", "b", ".ddtree/receipt.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d").write_text("")
    assert folder.extra_files({"a": None}) == ["b", "c/d"]


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProvisionError, match=r"cannot be made.*choose another dest"):
        ModelFolder(tmp_path / "file" / "model").create()


def test_folders_are_readable_whatever_the_umask(tmp_path):
    old = os.umask(0o077)
    try:
        make_folder(tmp_path / "a" / "b")
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o755, 0o755]
