"""A file is replaced as a whole, with its rights, or not at all."""

import os

import pytest
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.system_file import FileState, describe_change, owner_ids, read_state, remove, write_atomically


def wanted(text, mode=0o640):
    return FileState(text, mode, os.geteuid(), os.getegid())


def test_what_is_written_is_what_is_read(tmp_path):
    path = str(tmp_path / "file")
    assert read_state(path) == FileState()
    for text in ("ü\r\n\n", ""):
        write_atomically(path, wanted(text))
        assert read_state(path) == wanted(text)
    assert os.listdir(tmp_path) == ["file"]


def test_bytes_that_are_no_text_survive_reading(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    write_atomically(str(path), wanted(read_state(str(path)).text))
    assert path.read_bytes() == b"\xff\xfe"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_atomically(str(path), FileState("new", "no mode", os.geteuid(), os.getegid()))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_symbolic_link_is_replaced_and_its_target_is_left(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("target")
    link.symlink_to(target)
    assert read_state(str(link)) == FileState()
    write_atomically(str(link), wanted("own"))
    assert not link.is_symlink()
    assert target.read_text() == "target"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ProvisionError, match="not a regular file"):
        read_state(str(tmp_path))


def test_removing_twice(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    assert remove(str(path))
    assert not remove(str(path))


def test_owners_by_name_and_number():
    assert owner_ids(None, None) == (os.geteuid(), os.getegid())
    assert owner_ids("0", "0") == owner_ids("root", "root") == (0, 0)
    with pytest.raises(ProvisionError, match="nobody-of-that-name"):
        owner_ids("nobody-of-that-name", None)


def test_a_diff_shows_rights_and_text():
    change = describe_change("/etc/x", FileState(), FileState("a\n", 0o644, 0, 0))
    assert change == {
        "before": "",
        "after": "a\n",
        "before_header": "/etc/x",
        "after_header": "/etc/x (mode 0644, uid 0, gid 0)",
    }
