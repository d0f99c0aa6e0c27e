"""Turns a user's text into the token ids the engine decodes from."""

from ddtree.errors import UserError


def chat_prompt_ids(tokenizer, text: str) -> list[int]:
    """One user message through the chat template, up to where the reply begins. Raises UserError without a template."""
    if not getattr(tokenizer, "chat_template", None):
        raise UserError("the model has no chat template; pass the whole prompt as it is with --raw")
    messages = [{"role": "user", "content": text}]
    encoded = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=True)
    return list(encoded["input_ids"])
