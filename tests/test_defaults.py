"""A default has one home, and what cannot read it there says the same number.

Python takes a number such as EPSILON from the file that owns it. A page without
imports, a notebook, a slide, a hint and the playground's JavaScript have it once more:
change the number, and a test here names each place.
"""

import ast
import inspect
import json
import pkgutil
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

from grpo_course import by_hand
from grpo_course.formulas import (
    DUAL_CLIP,
    EPSILON,
    FARTHEST,
    SAPO_TEMPERATURES,
    SPREAD_EPSILON,
    clip_settings,
)
from grpo_course.lessons import pictures
from grpo_course.lessons.hunt import script
from grpo_course.loop import KL_GAIN, TrainConfig, adapted_beta
from grpo_course.ppo import PPOConfig
from grpo_course.sort import run_policy_gradient
from grpo_course.text.training import GRPOConfig

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "grpo_course"
PLAYGROUND = ROOT / "tools/site_source/_static/playground"

# What can follow, follows


def test_a_number_has_one_home():
    for config in (TrainConfig(), PPOConfig(), GRPOConfig()):
        found = config.epsilon, config.dual_clip, config.kl_gain
        assert found == (EPSILON, DUAL_CLIP, KL_GAIN)
    functions = [adapted_beta, clip_settings]
    for each in pkgutil.iter_modules(pictures.__path__, pictures.__name__ + "."):
        members = inspect.getmembers(import_module(each.name), inspect.isfunction)
        functions += [function for _, function in members]
    homes = {"epsilon": EPSILON, "dual_clip": DUAL_CLIP, "gain": KL_GAIN}
    seen = Counter()
    for function in functions:
        for name, argument in inspect.signature(function).parameters.items():
            if name in homes and argument.default is not argument.empty:
                assert argument.default == homes[name], function
                seen[name] += 1
    assert seen.keys() == homes.keys()


# Where a name or a number in the signature is better to read than a constant

ALSO_CALLED = {  # arguments that are settings under another name
    "estimator": "kl_estimator",
    "gain": "kl_gain",
    "level": "ratio_level",
    "mode": "loss_mode",
    "num_samples": "eval_samples",
}
NEUTRAL = {"seed", "temperature"}  # 0 and 1 mean: nothing special
OF_THEIR_OWN = {"plots.py", "sequences.py"}  # smaller worlds
BUT_FOR = {
    # the plainest policy gradient, to which notebooks add one thing after the other
    ("sort.py", "deltas_mode"),
    ("sort.py", "loss_mode"),
    ("sort.py", "learning_rate"),
    ("evaluation.py", "level"),  # of an interval
    ("lm.py", "num_responses"),
    ("models.py", "device"),
}


def written_defaults(path):
    """Each constant that is a default in a signature. -> argument, value"""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            args = node.args
            last = args.args[len(args.args) - len(args.defaults) :]
            pairs = [*zip(last, args.defaults, strict=True)]
            pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
            for argument, default in pairs:
                if isinstance(default, ast.Constant) and default.value is not None:
                    yield argument.arg, default.value


def test_a_function_begins_as_a_config_does():
    configs, seen, unlike = (TrainConfig(), PPOConfig(), GRPOConfig()), 0, []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "lessons" in path.parts or path.name in OF_THEIR_OWN:
            continue
        for argument, value in written_defaults(path):
            name = ALSO_CALLED.get(argument, argument)
            homes = [getattr(each, name) for each in configs if hasattr(each, name)]
            if homes and name not in NEUTRAL and (path.name, argument) not in BUT_FOR:
                seen += 1
                if value not in homes:
                    unlike.append((path.name, argument, value))
    assert seen > 20 and not unlike, "these defaults are no longer those of a config"


# What cannot follow

NUMBER = r"(\d*\.?\d+)"


def texts():
    """What people read and write about the clip: name and text of each file."""
    for folder in ("notebooks", "teaching"):
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            cells = json.loads(path.read_text("utf-8"))["cells"]
            yield path.name, "\n".join("".join(cell["source"]) for cell in cells)
    for path in sorted((PACKAGE / "lessons/exercises").glob("nb*.py")):
        yield path.name, path.read_text("utf-8")


RANGES = {  # ways to write a clip range down, as two numbers around 1
    rf"clamp\({NUMBER}, {NUMBER}\)": "clamp(low, high)",
    rf"outside \[{NUMBER}, {NUMBER}\]": "outside [low, high]",
    rf"{NUMBER} (?:to|and) {NUMBER}": "low to high",
    rf"< {NUMBER}\) \| \(\w+ > {NUMBER}\)": "below low or above high",
}
WIDER = "0.5", "1.5"  # which 13 tries, and says so
HIGHER = "1.28"  # DAPO's, of which 13 has a mistake
UPPER = rf"(?:clamp\(max=|min\}}?\(r, ){NUMBER}\)"  # the upper end alone, as CISPO
TASK = rf"with \$\\varepsilon = {NUMBER}\$"  # "the clipped loss with ε = 0.2"


def test_texts_and_exercises_clip_where_the_course_does():
    ends = f"{1 - EPSILON:g}", f"{1 + EPSILON:g}"
    found, others = dict.fromkeys(RANGES.values(), 0), []
    for name, text in texts():
        for pattern, way in RANGES.items():
            for low, high in re.findall(pattern, text):
                if not 0 < float(low) < 1 or abs(float(low) + float(high) - 2) > 1e-9:
                    continue  # no range around 1
                found[way] += 1
                if (low, high) not in (ends, WIDER):
                    others.append((name, way, low, high))
        for high in re.findall(UPPER, text):
            if 1 < float(high) < 2 and high not in (ends[1], HIGHER):
                others.append((name, "the upper end", high))
        for epsilon in re.findall(TASK, text):
            if float(epsilon) != EPSILON:
                others.append((name, "a task", epsilon))
    assert not others, "\n".join(map(str, others))
    assert all(found.values()), "a way to write the range that nobody uses any more"


def test_the_page_to_take_home_and_the_hunted_script_have_the_same_numbers():
    given = inspect.signature(by_hand.train_by_hand).parameters
    assert given["epsilon"].default == EPSILON
    assert script.Settings().epsilon == EPSILON
    for source in map(inspect.getsource, (by_hand, script)):
        spread = re.findall(r"\+ (1e-\d+)", source)
        assert [float(number) for number in spread] == [SPREAD_EPSILON]
    farthest = re.findall(r"clamp\(max=(\d+)\)", inspect.getsource(by_hand))
    assert {float(number) for number in farthest} == {FARTHEST}


def test_the_playground_begins_as_the_course_does():
    """But for a start that learns in a minute, and a reference that stays."""
    stories = (PLAYGROUND / "stories.js").read_text("utf-8")
    start = stories.split("const START = {")[1].split("}")[0]
    found = dict(re.findall(r"(\w+): \"?([\w.]+)", start))
    for name in ("init_scale", "compute_ref_model_period", "reward_fn", "prompts"):
        del found[name]
    rate = inspect.signature(run_policy_gradient).parameters["learning_rate"].default
    expected = vars(TrainConfig()) | {"learning_rate": rate}
    assert len(found) == 8
    for name, text in found.items():
        value = expected[name]
        assert value == (text if isinstance(value, str) else float(text)), name


def test_the_playgrounds_formulas_have_the_numbers_of_the_package():
    code = (PLAYGROUND / "grpo.js").read_text("utf-8")

    def constant(name):
        return json.loads(re.search(rf"const {name} = ([^;]+);", code)[1])

    assert constant("SPREAD_EPSILON") == SPREAD_EPSILON
    assert constant("DUAL_CLIP") == DUAL_CLIP
    assert constant("SAPO_TEMPERATURES") == list(SAPO_TEMPERATURES)
