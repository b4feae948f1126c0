"""Each command that a page, a help or an error prints can be pasted, and runs in an
environment that holds nothing but what the course asks for.

Such an environment is made here of links to what is installed. `FRESH=1` makes one with
pip, as `lab` does, and one from the wheel with Colab's versions: that takes minutes and
a network.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from argparse import ArgumentParser
from contextlib import nullcontext
from dataclasses import fields
from functools import cache
from importlib import import_module, metadata
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grpo_course import install
from grpo_course.__main__ import COMMANDS, HAND_ON
from grpo_course.text import cli, task_check, trl
from grpo_course.text import commands as commands_of_a_run
from grpo_course.text.models import save_model
from grpo_course.text.tasks import TASKS, find_task
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import GRPOConfig, find_preset, make_task
from tools import run
from tools.notebook import read

ROOT = Path(__file__).resolve().parents[2]
FRESH = os.environ.get("FRESH")
PROJECT = ("README.md", "LICENSE", "MANIFEST.in", "pyproject.toml", "constraints.txt")

# What is printed, and where

FIRST = ("README.md", "INSTALL.md", "TRAINING.md")  # what a newcomer reads
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/*.md"), *ROOT.glob("t*/*/*.md")]
BOOKS = [*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("teaching/*.ipynb")]
FOLDERS = ("grpo_course", "tools", "claims")
SOURCES = [path for each in FOLDERS for path in (ROOT / each).rglob("*.py")]
COMMAND = re.compile(
    r"(?:python3?|py|\.venv/bin/[\w ]+?) (?:--?\w[^`\n]*?)?-m (?P<module>[\w.]+)"
    rf"(?P<words>[^`\n]*)|`(?P<short>(?:{'|'.join(COMMANDS)}) [^`\n]+)`"
)
PIP = re.compile(r"(?<!% )\bpip install ([^`\n]*)")
FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]+)")
UNQUOTED = re.compile(r"[][*?<>|&;$(){}#]")  # which zsh reads in its own way


def printed_by(cell):
    """What a cell has printed or displayed, as text."""
    for output in cell.get("outputs", []):
        yield output.get("text") or output.get("data", {}).get("text/plain", "")


@cache
def texts(path):
    """Of a page, a notebook with its outputs, or a module: every string in it."""
    if path.suffix == ".ipynb":
        cells = read(path).cells
        return [text for cell in cells for text in (cell.source, *printed_by(cell))]
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        values = (node.value for node in nodes if isinstance(node, ast.Constant))
        return [value for value in values if isinstance(value, str)]
    return [path.read_text(encoding="utf-8")]


def commands(path):
    """The commands in a file, as (module, what is typed behind it)."""
    for text in texts(path):
        for found in COMMAND.finditer(re.sub(r"\\\n\s*", " ", text)):
            typed = found["short"] or found["words"].strip()
            typed = re.sub(r"(?<=\w)[.,:;]+$", "", typed.partition(" #")[0].strip())
            if typed == "evaluate --baselines":  # only named
                typed += " --model runs/mine"
            yield found["module"] or "grpo_course", typed


def printed(*paths):
    """(file, module, words) of every command, each once; [optional] is taken."""
    found = {}
    for path in paths:
        for module, typed in commands(path):
            if path.suffix == ".py":
                typed = re.sub(r"[][]|\.\.\.", "", typed)
            found[module, typed] = path.name
    return [(name, *key) for key, name in found.items()]


EVERYWHERE = printed(*PAGES, *BOOKS, *SOURCES)
GIVEN = {"FOLDER": "tiny", "FILE": "mine.csv", "NAME": "03", "names": "01"}
GIVEN |= {"URL": "https://github.com/ada/grpo", "COMMAND": "train"}


def words_of(typed):
    """What a shell makes of it, with something in place of FOLDER and its like."""
    return [GIVEN.get(word, word) for word in shlex.split(typed)]


@pytest.mark.parametrize("path", [*PAGES, *BOOKS], ids=lambda path: path.name)
def test_a_shell_reads_a_command_as_it_stands(path):
    """zsh, too, which takes [, * and ? outside of quotes for names of files."""
    told = [typed for _, typed in commands(path)]
    told += [typed for text in texts(path) for typed in PIP.findall(text)]
    for typed in told:
        assert not UNQUOTED.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", typed)), typed


class Parsed(BaseException):  # which no command catches
    """The command line was understood; what is told is not done here."""


@pytest.fixture
def parse(monkeypatch, tmp_path, capsys):
    """Hands words to a command's own parser. -> what is wrong, or nothing"""

    def stop(*_, **__):
        raise Parsed

    parse_args, parse_known = ArgumentParser.parse_args, ArgumentParser.parse_known_args

    def parse_all(self, *given):
        parse_args(self, *given)
        raise Parsed

    def parse_ours(self, *given):
        parse_known(self, *given)
        raise Parsed

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert cli.new_task(["my_task.py"]) == 0
    monkeypatch.setattr(cli, "saved_config", lambda out: find_preset("gsm8k", None))
    for place, name in (
        (commands_of_a_run, "print_estimate"),
        (commands_of_a_run, "use_threads"),
        (task_check, "check_task"),
        (trl, "run"),
    ):
        monkeypatch.setattr(place, name, stop)
    monkeypatch.setattr(trl, "alone_in", nullcontext)
    monkeypatch.setattr(ArgumentParser, "parse_args", parse_all)

    def parsed(module, words):
        function = trl.main
        if module == "grpo_course":
            if not words or words[0] not in COMMANDS:
                return "" if words in ([], ["--help"]) else f"no command {words[0]}"
            place, _, function = COMMANDS[words[0]][0].partition(":")
            home = "" if place.startswith("tools.") else "grpo_course."
            function = getattr(import_module(home + place), function or "main")
            name, *words = words
            if name in ("lab", "slides"):  # the rest is JupyterLab's
                monkeypatch.setattr(ArgumentParser, "parse_known_args", parse_ours)
            if name in ("run", "save"):
                named = [word for word in words if re.fullmatch(r"\d\d\w*", word)]
                run.choose(ROOT / "notebooks", named)
            if name in HAND_ON:  # the rest is pytest's
                paths = [word for word in words if "/" in word]
                return " ".join(p for p in paths if not (ROOT / p).exists())
        try:
            function(words, ROOT) if module == "grpo_course" else function(words)
        except Parsed:
            return ""
        except (SystemExit, ValueError, OSError) as problem:
            return f"{problem}\n{capsys.readouterr().err}"
        finally:
            monkeypatch.setattr(ArgumentParser, "parse_known_args", parse_known)
        return capsys.readouterr().err or "it was not parsed to the end"

    return parsed


@pytest.mark.slow
def test_every_printed_command_is_parsed_by_its_own_parser(parse):
    wrong = []
    for file, module, typed in EVERYWHERE:
        ours = module in ("grpo_course", "grpo_course.text.trl")
        if told := ours and parse(module, words_of(typed)):
            wrong.append(f"{file}: {module} {typed}: {told[-300:]}")
    assert len(EVERYWHERE) > 70 and not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "typed"),
    [
        ("grpo_course", "trian --config sums"),
        ("grpo_course", "train --config laptops"),
        ("grpo_course", "run 01 --cpu fast"),
        ("grpo_course", "test tests/test_gone.py"),
        ("grpo_course.text.trl", "--config laptops"),
    ],
)
def test_a_command_that_cannot_be_is_seen(parse, module, typed):
    assert parse(module, words_of(typed))


def test_a_module_that_a_page_starts_without_an_environment_needs_none():
    """`python3 -m`, typed in a new terminal, is the system's own Python."""
    for file, module, _ in EVERYWHERE:
        path = ROOT / module.replace(".", "/")
        there = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        assert there or module in sys.stdlib_module_names | {"pip"}, (file, module)
    text = "\n".join(text for path in PAGES + BOOKS + SOURCES for text in texts(path))
    bare = {*re.findall(r"(?<!/)\bpython3 -m ([\w.]+)", text)}
    assert bare == {"grpo_course", "claims"}
    for module, words in (("grpo_course", ["--help"]), ("claims", ["03"])):
        command = [sys.executable, "-I", "-S", "-c", NAKED, str(ROOT), module, *words]
        assert subprocess.run(command, capture_output=True).returncode == 0, module


NAKED = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
# Flags of pip and of launchers of TRL; of `test`; of a benchmark; of Chromium; of CSS.
OTHERS = """
    clear config_file extra-index-url force-reinstall hash help no-compile no-deps
    nproc_per_node num_processes require-hashes upgrade version checks runs
    headless no-pdf-header-footer print-to-pdf
    jp-error-color1 jp-success-color0 picture
"""


def called():
    """The name of every function that is called, with its texts."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                texts = [each.value for each in node.args if hasattr(each, "value")]
                texts = [each for each in texts if isinstance(each, str)]
                yield getattr(node.func, "attr", getattr(node.func, "id", "")), texts


def test_every_command_that_an_error_puts_together_is_there():
    """From its words and the names of files; its flags are looked at below."""
    told = [words for name, words in called() if name in ("call", "pasted")]
    names = {words[0].split()[0] for words in told if words}
    assert len(names) > 8 and names <= {*COMMANDS, "COMMAND", "--help"}


def test_every_flag_that_is_named_is_one():
    """Wherever it stands: on a page, in a help, in an error."""
    known = {*OTHERS.split()}
    for kind in (GRPOConfig, *map(find_task, TASKS)):
        known |= {field.name.replace("_", "-") for field in fields(kind)}
    for function, words in called():
        if function in ("add", "add_argument"):
            known |= {word[2:] for word in words if word.startswith("--")}
    ours = [path for path in SOURCES if ROOT / "grpo_course" in path.parents]
    named = {
        flag: path.name
        for path in (*PAGES, *BOOKS, *ours)
        for text in texts(path)
        for flag in FLAG.findall(text)
    }
    unknown = {flag: name for flag, name in named.items() if flag not in known}
    assert len(named) > 60 and not unknown


# Environments that hold nothing else

PROGRAM = """
import json, sys, traceback
from grpo_course.text import trl
from grpo_course.__main__ import main
from grpo_course.text.cli import run_command

for module, words in json.loads(sys.argv[1]):
    print("$", module, *words)
    try:
        is_trl = module == "grpo_course.text.trl"
        status = run_command(trl.main, words) if is_trl else main(words)
    except SystemExit as ended:
        status = ended.code
    except Exception:
        traceback.print_exc()
        status = "a traceback"
    print("=", status)
"""
ONE = re.compile(r"^\$ (.*)\n((?:.*\n)*?)= (.*)$", re.MULTILINE)
FEW = {
    "num-problems": 40,
    "num-epochs": 1,
    "num-prompts": 2,
    "num-responses": 2,
    "micro-batch-size": 2,
    "eval-problems": 2,
    "eval-samples": 1,
    "max-new-tokens": 8,
    "num-threads": 1,
    "held-out-every": 1,
}
SHORT_TEST = "tests/frame/test_environment.py"
TINY = {"hidden-size": 16, "num-layers": 1, "num-heads": 2, "warm-start-steps": 2}


def flags(settings):
    return [str(word) for name in settings for word in (f"--{name}", settings[name])]


def small(words, tiny):
    """The same command, over in seconds: few problems, and a tiny model for a large."""
    name, *rest = words or [""]
    told = [str(tiny) if word == "tiny" else word for word in words]
    if "--seeds" in told:
        told[told.index("--seeds") + 1] = "2"
    if name in ("train", "--task", "--config") and "--resume" not in rest:
        named = dict(pairwise(words))
        task, config = (named.get(flag) for flag in ("--task", "--config"))
        own = task and task.endswith(":Reverse")
        preset = find_preset("reverse" if own else task or "gsm8k", config)
        told += flags(FEW if preset.model else FEW | TINY)
        if preset.model:
            told += flags({"model": tiny, "device": "cpu", "dtype": "float32"})
        if not own and getattr(make_task(preset), "data", None) == "gsm8k":
            told += flags({"data": tiny})  # real rows
        if "--out" not in words:
            told += ["--out", f"runs/{'_'.join(words).strip('-')}"]
    if name == "evaluate":
        told += flags({"eval-problems": 2, "eval-samples": 1, "batch": 2})
    if name == "check-task":
        told += ["--quick", *flags({"num-problems": 64, "eval-problems": 9})]
    more = {"lab": ["--version"], "test": [SHORT_TEST]}
    return [*told, *more.get(name, [])]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a random model in place of a large one, and rows of GSM8K."""
    folder = tmp_path_factory.mktemp("tiny")
    task = find_task("gsm8k")()
    problems = task.problems("train", 40, 0)
    told = [problem.question + task.gold(problem) for problem in problems]
    tokenizer = make_tokenizer(told, 400)
    model = make_tiny_model(tokenizer, "llama", hidden_size=16, context_length=1024)
    save_model(model, tokenizer, folder)
    rows = [{"question": p.question, "answer": p.solution} for p in problems]
    for split in ("train", "test"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def closure(*extras):
    """What pip installs for the course with these extras, as `metadata` has it."""
    waiting = [(x, "") for e in ("", *extras) for x in install.requirements(ROOT, e)]
    found = {}
    while waiting:
        line, extra = waiting.pop()
        need = Requirement(line)
        if need.marker and not need.marker.evaluate({"extra": extra}):
            continue
        for more in {"", *need.extras} - found.setdefault(need.name, set()):
            found[need.name].add(more)
            waiting += [(x, more) for x in metadata.requires(need.name) or []]
    return found


class Place:
    """An environment with the course's wheel and what it needs, and nothing else."""

    def __init__(self, folder):
        self.folder = folder
        self.python = install.venv_python(folder / "env")
        own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", install.RESTARTED}
        self.env = {k: v for k, v in os.environ.items() if k not in own}
        source = folder / "source"
        shutil.copytree(ROOT / "grpo_course", source / "grpo_course")
        for name in PROJECT:
            shutil.copy(ROOT / name, source)
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", str(source)]
        pip += ["-w", str(folder)] + ["--no-build-isolation"] * (not FRESH)
        subprocess.run(pip, check=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "env", with_pip=bool(FRESH), symlinks=True)
        if FRESH:
            self.install(str(wheel))
        else:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.packages)
            self.link("pip", *closure())

    @property
    def packages(self):
        return next((self.folder / "env").glob("lib/python*/site-packages"))

    def install(self, *words):
        """Into Colab's versions, but for torch, which has a job of its own."""
        lines = (ROOT / "colab-constraints.txt").read_text(encoding="utf-8")
        pins = self.folder / "pins.txt"
        pins.write_text(re.sub("torch==.*", "torch==2.13.*", lines), encoding="utf-8")
        pip = [self.python, "-m", "pip", "install", "-q", *install.torch_index()]
        subprocess.run([*pip, "-c", pins, *words], env=self.env, check=True)

    def link(self, *names):
        """As if pip had installed these."""
        for name in names:
            found = metadata.distribution(name)
            for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
                target = self.packages / top
                if not target.exists():
                    target.symlink_to(found.locate_file(top))

    def add(self, extra):
        """As a printed cure does."""
        if FRESH:
            self.install(*install.requirements(ROOT, extra))
        else:
            self.link(*closure(extra))

    def run(self, *words, **more):
        """-> the exit status, and what was printed"""
        done = subprocess.run(
            [self.python, *words],
            cwd=self.folder,
            env=self.env | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def each(self, told):
        """Commands in one process. -> the words of each, what it printed, its status"""
        status, said = self.run("-u", "-c", PROGRAM, json.dumps(list(told)))
        assert status == 0, said
        return ONE.findall(said)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("place"))


ASKED = {
    "smollm2": "fetch",
    "lora": "train --config sums --lora-rank 4 --model FOLDER",
    "scale": "--config sums",
}


@pytest.mark.slow
def test_what_an_extra_has_is_asked_for_before_work_begins(place, tiny):
    """And the cure that is printed installs just that, wherever it is pasted."""
    words = [each.replace("FOLDER", str(tiny)).split() for each in ASKED.values()]
    modules = ["grpo_course", "grpo_course", "grpo_course.text.trl"]
    for extra, (_, told, status) in zip(
        ASKED, place.each(zip(modules, words, strict=True)), strict=True
    ):
        *before, cure = told.strip().splitlines()
        assert status == "1" and "Not installed here" in before[-1], told
        assert len(before) == 1, "something was done before"
        needed, given = install.requirements(ROOT, extra), shlex.split(cure)
        assert given[:4] == [str(place.python), "-m", "pip", "install"]
        assert set(given[4:]) <= {*needed} <= {*given[4:], "accelerate"}  # Colab has it
        assert given[4:]


TYPED = printed(*(ROOT / name for name in FIRST), *sorted(BOOKS), *SOURCES)
TRAINS = "train", "show", "evaluate", "new-task", "check-task"


@pytest.mark.slow
def test_every_printed_command_that_trains_runs_where_nothing_else_is(place, tiny):
    """TRL's, too; that `fetch` ends with a model is seen with a network (below)."""
    place.add("scale")
    first = ["train", "--config", "sums", "--out", "runs/other"]  # that one is shown
    told = [("grpo_course", small(first, tiny))]
    for _, module, typed in TYPED:
        words = words_of(typed) or [""]
        by_trl = module == "grpo_course.text.trl" and words[0]
        if "tools." in typed:  # of a checkout
            continue
        if by_trl or words[0] in TRAINS:
            told.append((module, small(words, tiny)))
    done = place.each(told)
    wrong = [
        f"{words}:\n{said[-2000:]}" for words, said, status in done if status != "0"
    ]
    assert len(done) == len(told) > 20 and not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.skipif(not FRESH, reason="minutes, and a network: FRESH=1 runs it")
def test_what_a_newcomer_types_runs_in_a_new_checkout(tmp_path, tiny):
    """Line by line, from the first page on, with the system's Python and `.venv`."""
    course = tmp_path / "course"
    subprocess.run(["git", "clone", "-q", ROOT, course], check=True)
    own = {"PYTHONPATH", "VIRTUAL_ENV", "FRESH"}
    env = {name: value for name, value in os.environ.items() if name not in own}
    system = getattr(sys, "_base_executable", sys.executable)
    for _, module, typed in printed(*(ROOT / name for name in FIRST), *sorted(BOOKS)):
        words = words_of(typed)
        if module in ("grpo_course", "grpo_course.text.trl"):
            words = small(words, tiny)
        is_system = module in ("grpo_course", "claims")
        python = system if is_system else course / ".venv" / "bin" / "python"
        if module != "venv":
            done = subprocess.run([python, "-m", module, *words], cwd=course, env=env)
            assert done.returncode == 0, (module, typed)
