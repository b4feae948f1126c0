"""Claims: effects that are known, runs that go on, and a table that says what is so."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from claims import __main__, report, runner
from claims.report import BEST, VARIATIONS
from claims.runner import RATES, Claim, Setting, all_claims, replicate
from grpo_course.loop import ENOUGH

ROOT = Path(__file__).resolve().parents[1]
CLAIMS, TABLE = all_claims(), report.stored()


def noise(setting):
    """Of each seed, with the mean 0 and the sample spread 1 over 16 seeds."""
    values = torch.tensor([(seed * 7 % 16) - 7.5 for seed in setting.seeds])
    return values / values.std()


def claim(arm, other=0.0, **more):
    return Claim("99.a", "A beats B.", (arm, other), **more)


@pytest.mark.parametrize(
    "shift, within, word",
    [
        (0.6, None, "holds"),
        (0.4, None, "undecided"),
        (-0.4, None, "undecided"),
        (-0.6, None, "flips"),
        (0.1, 0.7, "holds"),
        (0.3, 0.7, "undecided"),
        (1.3, 0.7, "flips"),
        (-1.3, 0.7, "flips"),
    ],
)
def test_a_claim_holds_beyond_two_standard_errors(shift, within, word):
    """With 16 seeds of spread 1, two standard errors are 0.5."""
    run = replicate(claim(lambda setting: noise(setting) + shift), "as told")
    assert run["difference"] == pytest.approx(shift, abs=1e-6)
    assert run["error"] == pytest.approx(1 / 16**0.5, abs=1e-6)
    assert report.verdict(run, within) == word


def test_each_variation_changes_what_it_says():
    seen = []

    def arm(setting):
        seen.append(setting)
        return noise(setting)

    for name in VARIATIONS[:-1]:
        replicate(claim(arm, seeds=range(5)), name)
    told, fresh, other, slow, fast, prompts, half, twice = seen
    assert told == Setting(range(5)) and not set(fresh.seeds) & set(other.seeds)
    assert (slow.rate * 9, half.length * 4) == pytest.approx((fast.rate, twice.length))
    assert prompts == Setting(fresh.seeds, prompts=1)


def test_each_arm_gets_its_own_best_rate():
    """At one rate A wins; at each one's best they are equal."""

    def best_at(rate):
        """Loses a tenth for each factor of three from its best rate."""

        def arm(setting):
            steps = torch.tensor(setting.rate / rate).log() / torch.tensor(3).log()
            return torch.zeros(len(setting.seeds)) - 0.1 * steps.abs()

        return arm

    made = claim(best_at(1.0), best_at(RATES[-1]))
    assert replicate(made, "as told")["difference"] == pytest.approx(0.2, abs=1e-5)
    best = replicate(made, BEST)
    assert best["rates"] == [1.0, RATES[-1]]
    assert best["difference"] == pytest.approx(0.0, abs=1e-5)


def test_two_bounds_are_no_result():
    with pytest.raises(ValueError, match="at least 3 seeds"):
        replicate(claim(1.0), "as told")


def test_arms_are_combined_seed_by_seed():
    def seed(setting):
        return torch.tensor([*setting.seeds]).double()

    def of(arm):
        return runner.result(arm, Setting(range(3))).tolist()

    assert of(runner.minus(seed, 1)) == [-1, 0, 1]
    assert of(runner.mean_of([seed, runner.minus(seed, 2)])) == [-1, 0, 1]
    assert of(runner.repeated(seed, 4)) == [1.5, 5.5, 9.5]


def test_what_was_run_is_kept_and_not_run_again(monkeypatch, tmp_path, capsys):
    runs, stop = [], SimpleNamespace(after=3)

    def arm(setting):
        runs.append(setting)
        if len(runs) == stop.after:
            raise KeyboardInterrupt
        return noise(setting) + 1

    monkeypatch.setattr(runner, "all_claims", lambda: {"99.a": claim(arm)})
    monkeypatch.setattr(report, "TABLE", tmp_path / "table.json")
    with pytest.raises(KeyboardInterrupt):
        __main__.main(["99", "--run"])
    assert [*report.stored()["99.a"]["runs"]] == [*VARIATIONS][:2]
    __main__.main(["99.a", "--run"])
    shown = capsys.readouterr().out
    assert "99.a  A beats B." in shown and "holds in 9 of 9" in shown
    assert shown.count("+1.000 ± 0.250   holds") == 9
    ran = len(runs)
    __main__.main(["--run"])
    assert len(runs) == ran
    __main__.main(["--again"])
    assert len(runs) > ran
    with pytest.raises(SystemExit, match=r"no claim '98'; there are 99\.a"):
        __main__.main(["98"])


def test_the_table_says_what_the_claims_say():
    """The cure: `python3 -m claims --run`."""
    for key, made in CLAIMS.items():
        entry = TABLE[key]
        assert entry["says"] == made.says and entry.get("within") == made.within
        assert entry["not tried"] == made.not_tried
        assert [*entry["runs"]] == [n for n in VARIATIONS if n not in made.not_tried]
    assert [*TABLE] == [*CLAIMS]


def test_it_prints_with_the_standard_library_alone():
    bare = [sys.executable, "-S", "-E", "-m", "claims", "14.constant"]
    shown = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True, check=True)
    told = "A constant divisor gives the direction of the policy gradient exactly."
    assert f"14.constant  {told}" in shown.stdout
    assert report.ENOUGH == ENOUGH  # the course has the same


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=str)
def test_a_notebook_tells_each_of_its_claims_once(path):
    """In a cell's metadata, `"claims": ["03.offset"]`."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    named = [key for cell in cells for key in cell["metadata"].get("claims", [])]
    assert sorted(named) == sorted(k for k in CLAIMS if k[:2] == path.name[:2])
