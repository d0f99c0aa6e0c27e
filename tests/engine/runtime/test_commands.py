"""`ddtree generate` and `ddtree compare` on tiny models, through the real command line."""

import json

import pytest
from engine_kit import write_tiny_drafter, write_tiny_target

from ddtree.cli import main
from ddtree.runtime import comparison
from ddtree.runtime.comparison import Run, format_table


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    target = write_tiny_target(root / "target", "llama")
    return ["--model", str(target), "--drafter", str(write_tiny_drafter(root / "drafter", target))]


def test_generate_prints_the_same_text_in_every_mode(folders, capsys):
    texts = {}
    for mode in ("ar", "chain", "tree"):
        argv = ["generate", *folders, "--mode", mode, "--prompt", "w5 w6 w7", "--max-tokens", "20", "--ignore-eos"]
        assert main(argv) == 0
        out, err = capsys.readouterr()
        texts[mode] = out
        assert f"{mode}: 5 prompt tokens" in err  # the template adds two
        assert "20 tokens (length)" in err
        assert "acceptance length" in err
    assert texts["ar"].split()
    assert texts["chain"] == texts["tree"] == texts["ar"]


def test_generate_reads_stdin_and_leaves_the_template_out(folders, capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("w5 w6"))
    assert main(["generate", *folders[:2], "--raw", "--prompt", "-", "--max-tokens", "3"]) == 0
    assert "ar: 2 prompt tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--mode", "tree"], "needs a drafter"),
        (["--max-tokens", "0"], "max_tokens"),
        (["--temperature", "-1"], "temperature"),
        (["--threads", "0"], "--threads"),
        (["--max-context", "3"], "the prompt has 4 tokens"),
    ],
)
def test_generate_refuses(folders, capsys, argv, message):
    assert main(["generate", *folders[:2], "--prompt", "w5 w6", *argv]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("ddtree: error: ")


def test_compare_prints_the_table_and_writes_the_same_as_json(folders, capsys, tmp_path):
    file = tmp_path / "prompts.json"
    file.write_text('{"first": "w5 w6"}')
    report = tmp_path / "report.json"
    argv = ["compare", *folders, "--prompt-file", str(file), "--prompt", "second=w7 w8", "--max-tokens", "12"]
    assert main([*argv, "--json", str(report), "--budget", "20", "--topk", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["prompt", "mode", "tokens"]
    assert [line.split()[:2] for line in lines[2:8]] == [
        [p, m] for p in ("first", "second") for m in ("ar", "chain", "tree")
    ]
    assert len({len(line) for line in lines[1:8]}) == 1, "the columns are not aligned"
    assert "budget 20, topk 9, depth 7" in lines[8]
    values = json.loads(report.read_text())
    assert values["conditions"]["budget"] == 20
    for line, run in zip(lines[2:8], values["runs"], strict=True):
        assert line.split()[2] == str(run["tokens"]) == str(len(run["token_ids"]))
        assert line.split()[5] == str(run["target_forwards"])
        assert run["identical"] is True
    assert [run["acceptance_length"] for run in values["runs"] if run["mode"] == "ar"] == [1.0, 1.0]


@pytest.mark.parametrize(("dtype", "status"), [("float32", 1), ("bfloat16", 0)])
def test_compare_fails_when_float32_texts_differ(folders, capsys, monkeypatch, dtype, status):
    decode = comparison._decode

    def wrong_tree(engine, name, prompt_ids, params, mode, plain, progress):
        prompt_ids = prompt_ids[:-1] if mode == "tree" else prompt_ids
        return decode(engine, name, prompt_ids, params, mode, plain, progress)

    monkeypatch.setattr(comparison, "_decode", wrong_tree)
    assert main(["compare", *folders, "--prompt", "p=w5 w6 w9", "--max-tokens", "12", "--dtype", dtype]) == status
    out, err = capsys.readouterr()
    assert "NO" in out
    assert "differs from plain decoding: p/" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--prompt", "no equals sign"], "NAME=TEXT"),
        (["--prompt", "a=1", "--prompt", "a=2"], "two prompts of that name"),
        (["--prompt-file", "/nowhere.json"], "cannot be read"),
    ],
)
def test_compare_refuses(folders, capsys, argv, message):
    assert main(["compare", *folders, *argv]) == 2
    assert message in capsys.readouterr().err


def test_table_of_uneven_cells_is_aligned():
    def run(prompt, mode, tokens):
        return Run(prompt, mode, tokens, 1234.5, 2.0, 3, 0.1, 0.2, 1.5, True, "length", ())

    lines = format_table([run("a", "ar", 1), run("a long name", "chain", 100000)]).splitlines()
    assert len({len(line) for line in lines}) == 1
