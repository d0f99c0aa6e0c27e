"""Hypothesis strategies for what a process may receive: nasty strings, argvs, environments."""

from hypothesis import strategies as st

_PIECES = [
    '"', "'", "\\", "%", "%%", "%h", "%n", "$", "$$", "${HOME}", "$HOME", ";", "#", " ", "  ", "\t", "=", ",",
    "\\n", "\\x41", "\\;", '{"a": ["b c", "it\'s"], "d": "50%"}',
    "ü", "日本語", "🙂", "\u2028", "\u00a0", "\u3000", "\x85", "~", "*", "`id`", "$(id)",
    "-", "--flag", "@", ":", "!", "+", "|", "&", "<", ">", "%(ENV_HOME)s", "%(here)s", "[x]", "a", "Z", "0", "/", ".",
]  # fmt: skip


def strings(refused: str = ""):
    """Text that a process can receive, less the characters refused; never with noncharacters or surrogates."""
    valid = st.characters(
        codec="utf-8", exclude_characters="\0\n" + refused + "".join(map(chr, [*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF]))
    ).filter(lambda character: ord(character) & 0xFFFE != 0xFFFE)
    pieces = st.sampled_from([piece for piece in _PIECES if not set(piece) & set(refused)])
    return st.lists(st.one_of(pieces, valid), max_size=8).map("".join)


def arguments(refused: str = ""):
    return st.lists(strings(refused), max_size=6)


def environments(refused: str = ""):
    """Names begin with T_: none of them steers a Python or a shell."""
    names = st.from_regex(r"T_[A-Za-z0-9_]{0,6}", fullmatch=True)
    return st.dictionaries(names, strings(refused), max_size=4)
