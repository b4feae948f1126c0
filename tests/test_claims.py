"""The ledger of claims: effects that are known, runs that go on, words that stand."""

from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch

from claims import ledger, table
from claims.claim import BEST, CHANGES, VARIATIONS, Claim, Setting, varied
from claims.replication import RATES, compare, replicate

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ledger.all_claims()


def noise(setting):
    """Of each seed, with the mean 0 and the sample spread 1 over 16 seeds."""
    values = torch.tensor([(seed * 7 % 16) - 7.5 for seed in setting.seeds])
    return values / values.std()


def shifted(by, rate_for_best=1.0):
    """An arm that loses a tenth for each factor of three from its best rate."""

    def arm(setting):
        steps = torch.tensor(setting.rate / rate_for_best).log() / torch.tensor(3).log()
        return torch.zeros(len(setting.seeds)) + by - 0.1 * steps.abs()

    return arm


def claim(higher, lower=lambda setting: torch.zeros(len(setting.seeds)), **more):
    return Claim("99.a", "A beats B", higher, lower, **more)


def test_an_effect_is_the_mean_difference_with_its_standard_error():
    effect = compare(noise(Setting()) + 0.6, torch.zeros(16))
    assert effect.difference == pytest.approx(0.6, abs=1e-6)
    assert effect.error == pytest.approx(1 / 16**0.5, abs=1e-6)
    assert (effect.higher, effect.lower, effect.seeds) == (effect.difference, 0, 16)


@pytest.mark.parametrize(
    "shift, within, holds",
    [
        (0.6, None, True),
        (0.4, None, None),
        (-0.4, None, None),
        (-0.6, None, False),
        (0.1, 0.7, True),
        (0.3, 0.7, None),
        (1.3, 0.7, False),
        (-1.3, 0.7, False),
    ],
)
def test_a_claim_holds_flips_or_is_undecided_at_two_standard_errors(
    shift, within, holds
):
    """With 16 seeds of spread 1, two standard errors are 0.5."""
    made = claim(lambda setting: noise(setting) + shift, within=within)
    assert replicate(made, "as told").holds(made) is holds


def test_each_variation_changes_what_it_says():
    told = Setting(range(5), prompts=0)
    settings = {n: varied(claim(noise, told=told), n) for n in CHANGES}
    assert settings["as told"] == told
    assert len(set(settings.values())) == len(CHANGES)
    assert settings["a third of the rate"].rate == pytest.approx(1 / 3)
    assert settings["other prompts"].prompts == 1
    assert settings["half as long"].length * 4 == settings["twice as long"].length == 2
    fresh = [set(s.seeds) for n, s in settings.items() if n != "as told"]
    assert not any(seeds & set(range(32)) for seeds in fresh)


def test_each_arm_gets_its_own_best_rate():
    """At one rate A wins; at each one's best they are equal."""
    made = claim(shifted(0.5), shifted(0.5, rate_for_best=RATES[-1]))
    assert replicate(made, "as told").difference == pytest.approx(0.2, abs=1e-5)
    best = replicate(made, BEST)
    assert best.rates == (1.0, RATES[-1])
    assert best.difference == pytest.approx(0.0, abs=1e-5)


def test_a_bound_is_one_number_and_two_numbers_are_no_result():
    assert compare(torch.ones(4), 0.9).difference == pytest.approx(0.1)
    for wrong in ((1.0, 0.9), (torch.ones(2), torch.ones(2))):
        with pytest.raises(ValueError, match="at least 3 seeds"):
            compare(*wrong)


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """A ledger of one claim; `runs` are those that took place."""
    runs = []

    def arm(setting):
        runs.append(setting)
        if len(runs) == stop.after:
            raise KeyboardInterrupt
        return noise(setting) + 1

    stop = SimpleNamespace(after=0)
    known = {"99.a": claim(arm)}
    monkeypatch.setattr(ledger, "all_claims", lambda: known)
    monkeypatch.setattr(ledger, "TABLE", tmp_path / "table.json")
    return SimpleNamespace(runs=runs, stop=stop)


def test_what_was_run_is_kept_and_not_run_again(made_up, capsys):
    made_up.stop.after = 3
    with pytest.raises(KeyboardInterrupt):
        ledger.main(["99"], ROOT)
    assert [*ledger.stored()["99.a"]] == [*VARIATIONS][:2]
    ledger.main(["99.a"], ROOT)
    assert "holds in 9 of 9" in capsys.readouterr().out
    ran = len(made_up.runs)
    ledger.main([], ROOT)
    assert len(made_up.runs) == ran
    ledger.main(["--again"], ROOT)
    assert len(made_up.runs) > ran


def test_a_bar_shows_what_is_running(made_up, capsys):
    ledger.main([], ROOT)
    shown = capsys.readouterr().err
    assert "99.a, half as long" in shown
    assert "9/9" in shown


def test_each_claim_says_what_it_cost(made_up, capsys):
    ledger.main([], ROOT)
    rows = ledger.stored()
    for name in rows["99.a"]:
        rows["99.a"][name]["seconds"] = 40.4 if name == "as told" else 0.2
    ledger.store(rows)
    ledger.main(["--list"], ROOT)
    page = table.page(ledger.all_claims(), ledger.stored())
    for shown in (capsys.readouterr().out, page):
        assert "holds in 9 of 9; 42 s to run" in shown


def test_an_unknown_name_lists_the_known_ones(made_up):
    with pytest.raises(SystemExit, match=r"no claim '98'; there are 99\.a"):
        ledger.main(["98"], ROOT)


def test_the_table_says_what_came_out(made_up, capsys):
    ledger.main(["--list"], ROOT)
    assert "holds in 0 of 0, 9 not run" in capsys.readouterr().out
    ledger.main([], ROOT)
    page = table.page(ledger.all_claims(), ledger.stored())
    assert "> A beats B" in page
    assert page.count("+1.000 ± 0.250 | holds |") == 9


@pytest.mark.parametrize("key", CLAIMS)
def test_a_claim_quotes_its_notebook(key):
    """The sentence stands in one text of the notebook, word for word."""
    (path,) = (ROOT / "notebooks").glob(f"{key.split('.')[0]}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    texts = [" ".join(c.source.split()) for c in cells if c.cell_type == "markdown"]
    assert any(CLAIMS[key].sentence in text for text in texts), CLAIMS[key].sentence


@pytest.mark.parametrize("key", CLAIMS)
def test_the_stored_table_is_whole(key):
    """The cure: `python3 -m claims`."""
    made = CLAIMS[key]
    assert [*ledger.stored()[key]] == [n for n in VARIATIONS if n not in made.leave_out]
    assert made.leave_out.keys() <= {*VARIATIONS}


def test_the_stored_table_has_no_claim_that_was_dropped():
    assert ledger.stored().keys() == CLAIMS.keys()


def test_the_readme_counts_what_is_stored():
    claims, rows = ledger.all_claims(), ledger.stored()
    number, told = table.totals(claims, rows).split(" experiments: ")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        f"make {len(claims)} claims" in readme
        and f"{len(claims)} claims about" in readme
    )
    assert f"and {int(number) - len(claims)} variations of them" in readme
    seeds = [row["seeds"] for each in rows.values() for row in each.values()]
    counted = f"{number} experiments, each on {min(seeds)} to {max(seeds)} seeds"
    assert f"{counted}, {told}." in readme
    assert f"[{number} experiments](#check-the-claims): {told}." in readme
    page = (ROOT / "grpo_course/workshop/site_source/index.md").read_text("utf-8")
    page = " ".join(page.split())
    assert f"{len(claims)} claims about" in page
    assert f"[{number} experiments](claims.md): {told}." in page
    page = table.page(claims, rows)
    assert f"{len(claims)} claims and {number} experiments: {told}." in page
