"""Encoding many prompts at once while the engine's thread decodes: no call disturbs another."""

import copy
from concurrent.futures import ThreadPoolExecutor

from serving_stub import make_tokenizer
from tokenizers.processors import TemplateProcessing

from ddtree.serving.detokenizer import decode_all
from ddtree.serving.prompts import PromptEncoder
from ddtree.serving.protocol import ChatRequest, CompletionRequest


def test_encoding_in_many_threads_beside_decoding():
    tokenizer = make_tokenizer()
    encoder = PromptEncoder(tokenizer)
    texts = [f"request {number} 😀 " * 50 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        encoded = pool.map(lambda text: encoder.encode(CompletionRequest(model="m", prompt=text)), texts)
        decoded = pool.map(lambda text: decode_all(tokenizer, tokenizer.encode(text)), texts)
        assert list(decoded) == texts
        assert [decode_all(tokenizer, token_ids) for token_ids in encoded] == texts


def test_a_chat_gets_no_second_begin_token():
    """Llama-like tokenizers put one before every text, and their chat templates write it as well."""
    tokenizer = copy.deepcopy(make_tokenizer())
    begin = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin)]
    )
    tokenizer.chat_template = "<|endoftext|>" + tokenizer.chat_template
    encoder = PromptEncoder(tokenizer)
    chat = encoder.encode(ChatRequest(model="m", messages=[{"role": "user", "content": "hi"}]))
    prompt = encoder.encode(CompletionRequest(model="m", prompt="hi"))
    assert (chat.count(begin), prompt.count(begin)) == (1, 1)
    assert chat[0] == prompt[0] == begin


def test_the_engines_tokenizer_is_left_alone(tokenizer):
    before = tokenizer.backend_tokenizer.to_str()
    PromptEncoder(tokenizer).encode(ChatRequest(model="m", messages=[{"role": "user", "content": "hi"}]))
    assert tokenizer.backend_tokenizer.to_str() == before
