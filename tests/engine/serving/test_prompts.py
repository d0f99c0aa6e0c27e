"""Encoding many prompts at once while the engine's thread decodes: no call disturbs another."""

from concurrent.futures import ThreadPoolExecutor

from ddtree.serving.detokenizer import decode_all
from ddtree.serving.prompts import PromptEncoder
from ddtree.serving.protocol import ChatRequest, CompletionRequest
from serving_stub import make_tokenizer


def test_encoding_in_many_threads_beside_decoding():
    tokenizer = make_tokenizer()
    encoder = PromptEncoder(tokenizer)
    texts = [f"request {number} 😀 " * 50 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        encoded = pool.map(lambda text: encoder.encode(CompletionRequest(model="m", prompt=text)), texts)
        decoded = pool.map(lambda text: decode_all(tokenizer, tokenizer.encode(text)), texts)
        assert list(decoded) == texts
        assert [decode_all(tokenizer, token_ids) for token_ids in encoded] == texts


def test_the_engines_tokenizer_is_left_alone(tokenizer):
    before = tokenizer.backend_tokenizer.to_str()
    PromptEncoder(tokenizer).encode(ChatRequest(model="m", messages=[{"role": "user", "content": "hi"}]))
    assert tokenizer.backend_tokenizer.to_str() == before
