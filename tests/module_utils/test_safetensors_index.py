"""The index of a sharded model against its shards."""

import json

import pytest
from ansible.module_utils.safetensors_header import InvalidSafetensors, Tensor
from ansible.module_utils.safetensors_index import check_index, read_weight_map

INDEX = "model.safetensors.index.json"


def header(*names):
    return {name: Tensor(name, "U8", (10,), 10 * i, 10 * i + 10) for i, name in enumerate(names)}


HEADERS = {"one.safetensors": header("a", "b"), "two.safetensors": header("c")}
MAP = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}


def test_a_right_index():
    check = check_index(INDEX, MAP, 30, HEADERS)
    assert (check.problems, check.warnings) == ([], [])


def test_a_missing_shard_is_named():
    check = check_index(INDEX, MAP, 30, {"one.safetensors": HEADERS["one.safetensors"]})
    assert check.problems == [(INDEX, "names the shard two.safetensors for 1 tensors, which is not there")]
    assert check.warnings == []  # a total over a part says nothing


def test_a_tensor_that_its_shard_lacks():
    check = check_index(INDEX, {**MAP, "d": "two.safetensors"}, 30, HEADERS)
    assert check.problems == [("two.safetensors", f"has no tensor 'd' in its header, where {INDEX} places it")]


def test_a_tensor_that_the_index_lacks():
    check = check_index(INDEX, {"a": "one.safetensors", "c": "two.safetensors"}, 30, HEADERS)
    assert check.problems == [(INDEX, "does not list tensor 'b' of shard one.safetensors under that shard")]


def test_a_tensor_placed_in_the_wrong_shard_is_two_problems():
    check = check_index(INDEX, {**MAP, "c": "one.safetensors", "x": "two.safetensors"}, 30, HEADERS)
    assert len(check.problems) == 3


def test_many_names_are_cut_short():
    missing = {f"t{i}": "two.safetensors" for i in range(50)}
    (problem,) = check_index(INDEX, {**MAP, **missing}, 30, HEADERS).problems
    assert "'t0', 't1', 't10' and 47 more" in problem[1]


def test_a_stale_total_is_a_warning():
    check = check_index(INDEX, MAP, 31, HEADERS)
    assert check.problems == []
    assert check.warnings == [f"{INDEX}: metadata.total_size is 31, the shards' tensors have 30 bytes"]
    assert check_index(INDEX, MAP, None, HEADERS).warnings == []


def test_a_shard_that_is_broken_itself_is_not_reported_twice():
    check = check_index(INDEX, MAP, 30, {**HEADERS, "two.safetensors": None})
    assert (check.problems, check.warnings) == ([], [])


def test_an_index_in_a_subfolder_speaks_of_its_neighbours():
    headers = {f"sub/{name}": value for name, value in HEADERS.items()}
    assert check_index(f"sub/{INDEX}", MAP, 30, headers).problems == []
    assert check_index(f"sub/{INDEX}", MAP, 30, HEADERS).problems


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        ("[]", "no weight_map"),
        ("{}", "no weight_map"),
        ('{"weight_map": {}}', "no weight_map"),
        ('{"weight_map": []}', "no weight_map"),
        ('{"weight_map": {"a": "../../etc/x"}}', r"tensor 'a' in file '../../etc/x', which holds"),
        ('{"weight_map": {"a": "/x"}}', "is absolute"),
        ('{"weight_map": {"a": 7}}', "file 7, which is empty"),
        ('{"weight_map": {"a": ""}}', "is empty"),
        ("\xff\xfe", "not JSON"),
    ],
)
def test_an_index_that_is_none(tmp_path, content, said):
    path = tmp_path / INDEX
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidSafetensors) as caught:
        read_weight_map(path)
    assert said in str(caught.value)


def test_reading(tmp_path):
    path = tmp_path / INDEX
    path.write_text(json.dumps({"metadata": {"total_size": 30}, "weight_map": MAP}))
    assert read_weight_map(path) == (MAP, 30)
    path.write_text(json.dumps({"weight_map": MAP}))
    assert read_weight_map(path) == (MAP, None)
