"""Building a folder: whole or not at all, again when it is damaged, never over somebody else's files."""

import multiprocessing
from pathlib import Path

import pytest

from ddtree.demo import model
from ddtree.demo.model import MARKER, build_demo_model, is_finished
from ddtree.errors import UserError


def convert(gguf: Path, folder: Path) -> None:
    """Stands in for 20 s of conversion; what is under test lies around it."""
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(gguf.read_bytes())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gguf = tmp_path / "source.gguf"
    gguf.write_bytes(b"weights")
    monkeypatch.setattr(model, "obtain_gguf", lambda *_: gguf)
    monkeypatch.setattr(model, "_convert", convert)


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "hub" / "org" / "name"


def leftovers(destination: Path) -> set[str]:
    return {path.name for path in destination.parent.iterdir()} - {destination.name, f".{destination.name}.lock"}


def test_a_build_leaves_the_folder_and_nothing_beside_it(destination: Path) -> None:
    assert build_demo_model(destination) == destination
    assert is_finished(destination)
    assert (destination / "model.safetensors").read_bytes() == b"weights"
    assert leftovers(destination) == set()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_build_leaves_nothing(
    destination: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    def interrupted(gguf: Path, folder: Path) -> None:
        convert(gguf, folder)
        raise interruption

    with monkeypatch.context() as patch:
        patch.setattr(model, "_convert", interrupted)
        with pytest.raises((KeyboardInterrupt, UserError)):
            build_demo_model(destination)
    assert not destination.exists()
    assert leftovers(destination) == set()
    build_demo_model(destination)
    assert is_finished(destination)


def test_what_a_killed_build_left_is_cleared_away(destination: Path) -> None:
    half = destination.with_name(f".{destination.name}.building") / "files"
    half.mkdir(parents=True)
    (half / "config.json").write_text("half")
    assert not is_finished(half)
    build_demo_model(destination)
    assert leftovers(destination) == set()


@pytest.mark.parametrize("harm", ["cut", "change", "remove", "recipe"])
def test_a_damaged_or_older_folder_is_built_anew(destination: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    build_demo_model(destination)
    shard = destination / "model.safetensors"
    if harm == "cut":
        shard.write_bytes(b"weigh")
    elif harm == "change":
        shard.write_bytes(b"weightz")
    elif harm == "remove":
        (destination / "config.json").unlink()
    else:
        monkeypatch.setattr(model, "RECIPE_VERSION", model.RECIPE_VERSION + 1)
    assert not is_finished(destination)
    build_demo_model(destination)
    assert is_finished(destination)
    assert shard.read_bytes() == b"weights"
    assert leftovers(destination) == set()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"recipe": {}, "files": {}}', '{"files": 3}'])
def test_a_damaged_marker_is_no_finished_folder(destination: Path, text: str) -> None:
    build_demo_model(destination)
    (destination / MARKER).write_text(text)
    assert not is_finished(destination)


def test_files_of_somebody_else_are_not_touched(destination: Path) -> None:
    destination.mkdir(parents=True)
    (destination / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="holds files that are not this demo model"):
        build_demo_model(destination)
    assert [path.name for path in destination.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_used(destination: Path) -> None:
    destination.mkdir(parents=True)
    build_demo_model(destination)
    assert is_finished(destination)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for destination in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match="file"):
            build_demo_model(destination)


def test_a_small_disk_is_refused_before_anything_is_written(destination: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_PEAK_BYTES", 10**18)
    with pytest.raises(UserError, match="MB free"):
        build_demo_model(destination)
    assert not destination.exists()


def test_two_builds_at_once_give_one_folder(destination: Path) -> None:
    context = multiprocessing.get_context("fork")  # children inherit the stand-in
    builders = [context.Process(target=build_demo_model, args=(destination,)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(30)
    assert [builder.exitcode for builder in builders] == [0] * 4
    assert is_finished(destination)
    assert leftovers(destination) == set()
