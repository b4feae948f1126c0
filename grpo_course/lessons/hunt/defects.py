"""What can be wrong with the trainer, what that costs, and the script with it."""

import linecache
import random
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from zlib import crc32

from grpo_course.lessons.hunt import script
from grpo_course.lessons.hunt.rewrites import edits_of, rewritten

HEALTHY = Path(script.__file__).read_text(encoding="utf-8")


class Cost(NamedTuple):
    """Reward at the end, with the defect minus without, paired by seed."""

    mean: float
    error: float  # standard error over eight seeds

    def is_seen(self, num_pairs: int = 8) -> bool:
        """Whether so many pairs would tell it from nothing: three standard errors,
        which chance alone exceeds for fewer than one of all defects."""
        return abs(self.mean) > 3 * self.error * (8 / num_pairs) ** 0.5

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Defect:
    """A defect of the trainer, and how it comes to light.

    `diff` leads from the healthy script to one with the defect: hunks of whole lines,
    the one at fault first, written as far left as a method's own.
    """

    cause: str  # its name, as one would say it
    symptom: str  # what a careful look at a run sees, beside a healthy one
    first_look: str  # where to look before any probe
    why: str  # the mechanism, for the debriefing
    thread: str  # who has met it: project and number
    probes: tuple[str, ...]  # the course's that must find it, the most telling first
    diff: str
    cost: tuple[float, float]  # mean and standard error, see Cost
    settings: dict[str, float] = field(default_factory=dict)  # of a run that shows it
    cost_awake: tuple[float, float] | None = None  # with these settings
    sleeps: str = ""  # which setting lets it sleep

    @property
    def edits(self) -> list[tuple[str, str]]:
        """Pairs of text: what stands in the healthy script once, what in its place."""
        return edits_of(self.diff)

    @property
    def stages(self) -> list[str]:
        """The methods of the trainer in which its lines stand."""
        return list(dict.fromkeys(stage_of(old) for old, _ in self.edits))


# By the number of the trainer, which says nothing about a stage.
BY_STAGE = {
    # What is written, masked and scored.
    2: Defect(
        cause="temperature missing from the scores",
        symptom=(
            "At a temperature of 0.4 my run ends with about twice the entropy of a "
            "colleague's in the log, and the rewards are alike."
        ),
        first_look="entropy of the log beside a few samples, at two temperatures",
        why=(
            "Sampled at temperature T, scored at 1: the scores are those of another "
            "policy than the one that wrote."
        ),
        thread="huggingface/trl #3029",
        probes=("own_words_look_likely",),
        diff="""
        - log_probs = (logits[:, :-1] / self.settings.temperature).log_softmax(-1)
        + log_probs = logits[:, :-1].log_softmax(-1)
        """,
        cost=(0.0019, 0.0038),
        settings={"temperature": 0.4},
        cost_awake=(0.0245, 0.0042),
        sleeps="temperature: at 1 nothing is wrong",
    ),
    10: Defect(
        cause="attention mask left out of the scores",
        symptom=(
            "The entropy in my log is one and a half to three times a colleague's in "
            "the first rollout, and stays above it."
        ),
        first_look="old scores of short and of long prompts in one batch",
        why=(
            "Padding is read like a token, so a short prompt is scored as the "
            "continuation of a row of padding."
        ),
        thread="huggingface/trl #2708",
        probes=("padding_leaves_no_trace",),
        diff="""
        - logits, _ = self.model(batch.tokens, batch.attention)
        + logits, _ = self.model(batch.tokens)
        """,
        cost=(-0.0128, 0.0066),
        sleeps="padding: with prompts of one length nothing is wrong",
    ),
    1: Defect(
        cause="responses encoded anew from their text",
        symptom=(
            "Before any training my log says nearly twice the entropy that a "
            "colleague's says for the same weights. At the end the two agree."
        ),
        first_look="tokens of a response beside its text",
        why=(
            "Decoding and encoding is no way back: the model wrote 1 and 2, the "
            "tokenizer makes it 12, and the loss trains a token that nobody chose."
        ),
        thread="huggingface/trl #5224",
        probes=("trained_on_what_was_sampled",),
        diff="""
          texts, rewards = self.pay(problems, responses)
        + rows = [self.tokenizer.encode(f'{text}<end>') for text in texts]
        + responses = self.tokenizer.pad_rows(rows, "right")
        """,
        cost=(0.0075, 0.0055),
        sleeps="tokenizer: without merged tokens nothing is wrong",
    ),
    9: Defect(
        cause="end token masked as if it were padding",
        symptom=(
            "The mean length in my log is eight tenths of a token below a colleague's,"
            " for the same samples."
        ),
        first_look="last token that the mask keeps",
        why=(
            "Padding is the end token, and the mask drops whatever equals padding: the"
            " one token that stops is never trained."
        ),
        thread="huggingface/trl #6357",
        probes=("mask_keeps_the_response",),
        diff="""
        - is_eos = (responses == self.tokenizer.eos).long()
        - return is_eos.cumsum(dim=1) - is_eos == 0
        + return responses != self.tokenizer.eos

        -     token[finished] = self.tokenizer.pad
        +     token[finished] = self.tokenizer.eos
        """,
        cost=(-0.0083, 0.0059),
    ),
    15: Defect(
        cause="padding counted as response",
        symptom=(
            "My mean length is exactly max_new_tokens in every step, although the "
            "samples are short; the KL climbs and climbs."
        ),
        first_look="mean length in the log beside the samples",
        why=(
            "The mask reaches to a second end token, which never comes, so the padding"
            " behind the first is trained and counted."
        ),
        thread="bingreeky/MemGen #33",
        probes=("mask_keeps_the_response",),
        diff="""
        - return is_eos.cumsum(dim=1) - is_eos == 0
        + return is_eos.cumsum(dim=1) <= 1
        """,
        cost=(-0.0363, 0.0041),
    ),
    30: Defect(
        cause="scores of the next token",
        symptom=(
            "The reward falls, and my log says about 15 nats a token of entropy from "
            "the first rollout on."
        ),
        first_look="entropy in the first row of the log: is it below log(vocabulary)?",
        why=(
            "The logits at a token forecast the one after it; read at the token "
            "itself, they score a neighbour."
        ),
        thread="AI-Hypercomputer/maxtext #2103",
        probes=("own_words_look_likely", "surprise_equals_entropy"),
        diff="""
        - log_probs = (logits[:, :-1] / self.settings.temperature).log_softmax(-1)
        + log_probs = (logits[:, 1:] / self.settings.temperature).log_softmax(-1)
        """,
        cost=(-0.2724, 0.0120),
    ),
    26: Defect(
        cause="mask shifted by one token",
        symptom=(
            "It learns, but the entropy in my log is over three times a colleague's, "
            "and does not come down."
        ),
        first_look="first and last token that the mask keeps",
        why=(
            "Scores belong to the second token onwards, so their mask starts there "
            "too; cut at the other end, it is one off."
        ),
        thread="Goekdeniz-Guelmez/mlx-lm-lora #80",
        probes=("mask_keeps_the_response",),
        diff="""
        - mask = torch.cat([torch.zeros_like(attention), kept], dim=1)[:, 1:]
        + mask = torch.cat([torch.zeros_like(attention), kept], dim=1)[:, :-1]
        """,
        cost=(-0.0077, 0.0056),
    ),
    20: Defect(
        cause="prompt trained along with the response",
        symptom=(
            "My log says a mean length of 16 tokens in the first rollouts, where I "
            "allow 14, and an entropy of 3 nats a token."
        ),
        first_look="mean length in the log beside the samples",
        why=(
            "The mask keeps whatever is no padding, the user's words too: they are "
            "pushed up and down by the reward of an answer."
        ),
        thread="NVIDIA-NeMo/RL #2176",
        probes=("mask_keeps_the_response",),
        diff="""
        - mask = torch.cat([torch.zeros_like(attention), kept], dim=1)[:, 1:]
        + mask = torch.cat([attention, kept], dim=1)[:, 1:]
        """,
        cost=(-0.0219, 0.0039),
    ),
    33: Defect(
        cause="tool's answer trained as the model's own",
        symptom=(
            "In the first rollout the entropy in my log is about five times a "
            "colleague's, and in the last about ten times. She has the same tool, and "
            "our rewards are alike."
        ),
        first_look="entropy and mean length of the log beside a few samples",
        why=(
            "The model reads a tool's tokens, but never chose them. They are trained "
            "and logged all the same, though they surprise it. All responses of a "
            "group get the same answer, so the deltas on it nearly cancel, and the "
            "reward hardly suffers."
        ),
        thread="huggingface/trl #4975",
        probes=("mask_keeps_the_response",),
        diff="""
        - mask[:, -responses.shape[1] :] &= self.own_words(responses)
        """,
        cost=(0.0000, 0.0000),
        settings={"tool": True},
        cost_awake=(0.0022, 0.0059),
        sleeps="tool: without one nothing is wrong",
    ),
    22: Defect(
        cause="rare tokens never sampled, yet scored",
        symptom=(
            "At a temperature of 1.5 my entropy is below a colleague's from the first "
            "rollout on, and my reward soon above hers."
        ),
        first_look="the rarest token among many samples of one prompt",
        why=(
            "Sampled from the three best tokens, scored over the whole vocabulary: two"
            " different policies."
        ),
        thread="huggingface/trl #6789",
        probes=("surprise_equals_entropy",),
        diff="""
        -     probs = (logits[:, -1] / self.settings.temperature).softmax(-1)
        +     scores = logits[:, -1] / self.settings.temperature
        +     best = scores.topk(3)
        +     probs = torch.zeros_like(scores)
        +     probs.scatter_(1, best.indices, best.values.softmax(1))
        """,
        cost=(-0.0066, 0.0042),
        settings={"temperature": 1.5},
        cost_awake=(0.0080, 0.0030),
        sleeps="temperature: a sure policy rarely leaves its three best tokens",
    ),
    27: Defect(
        cause="old scores in low precision",
        symptom=(
            "As a test I ran one rollout with a learning rate of 0. The ratios in the "
            "log still reach from 0.9 to 1.08."
        ),
        first_look="ratio range of the first inner step",
        why=(
            "The sampler computes in bfloat16, the trainer in float32; its scores, "
            "taken as old, make a ratio out of rounding."
        ),
        thread="huggingface/trl #6789 (a comment with figures)",
        probes=("ratios_start_at_one",),
        diff="""
        - batch.old_log_probs = self.score(batch)
        + with torch.autocast("cpu", dtype=torch.bfloat16):
        +     batch.old_log_probs = self.score(batch)
        """,
        cost=(0.0032, 0.0021),
        sleeps="epsilon: a narrow clip range takes rounding for a change of policy",
    ),
    32: Defect(
        cause="old scores shifted by the prompt's length",
        symptom=(
            "In the very first optimizer step half of all tokens are clipped already, "
            "and the largest ratio goes into the thousands. The reward falls."
        ),
        first_look="clipped share of the first inner step",
        why=(
            "The scores of the responses alone stand at the front of the row, where "
            "those of prompt and response are read: each token is compared with "
            "another one, a prompt's length further on."
        ),
        thread=(
            'github.com/stanleyngugi/reasoning, "05 - GRPO Implementation", whose test '
            "run prints 16.1 % clipped in step 0"
        ),
        probes=("ratios_start_at_one",),
        diff="""
        - batch.old_log_probs = self.score(batch)
        + scores = self.score(batch)[:, prompts.shape[1] - 1 :]
        + batch.old_log_probs = torch.zeros(mask.shape)
        + batch.old_log_probs[:, : scores.shape[1]] = scores
        """,
        cost=(-0.3950, 0.0200),
    ),
    # What is paid, and what becomes of the pay.
    3: Defect(
        cause="groups that mix prompts",
        symptom=(
            "The reward rises as it should, but late in the run most of the perfect "
            "answers to short lists have a negative delta."
        ),
        first_look="prompts of one group, printed",
        why=(
            "The rows stand as ABCABC and are cut into groups as if they stood as "
            "AABBCC, so a response is compared with answers to other prompts."
        ),
        thread="StarsfieldAI/R1-V #67",
        probes=("groups_share_a_prompt",),
        diff="""
        - problems = [p for p in drawn for _ in range(self.settings.num_responses)]
        + problems = drawn * self.settings.num_responses
        """,
        cost=(-0.0023, 0.0055),
    ),
    18: Defect(
        cause="reward looks at another prompt's answer",
        symptom=(
            "The samples look right to me, and most of them are paid next to nothing."
        ),
        first_look="three samples with prompt, text and reward side by side",
        why=(
            "Responses stand as AABBCC, the answers to compare them with as ABCABC: "
            "most are graded against another problem."
        ),
        thread="om-ai-lab/VLM-R1 #129",
        probes=("rewards_fit_their_prompts",),
        diff="""
        - texts, rewards = self.pay(problems, responses)
        + asked = drawn * self.settings.num_responses
        + texts, rewards = self.pay(asked, responses)
        """,
        cost=(-0.0419, 0.0076),
    ),
    7: Defect(
        cause="cut-off responses paid",
        symptom=(
            "From the same seed, my first rollout earns more than a colleague's in "
            "four runs of five, with the same limit of eight tokens."
        ),
        first_look="share of responses without an end token, and their rewards",
        why=(
            "Text without its end is graded as if it were finished: to run into the "
            "limit costs nothing, so the model need not learn to stop."
        ),
        thread="huggingface/open-r1 #271",
        probes=("cut_off_pays_nothing",),
        diff="""
        - ended = (responses == self.tokenizer.eos).any(dim=1)

        - return texts, torch.tensor(rewards) * ended
        + return texts, torch.tensor(rewards)
        """,
        cost=(0.0024, 0.0016),
        settings={"max_new_tokens": 8},
        cost_awake=(0.0309, 0.0108),
        sleeps="max_new_tokens: with a generous limit few responses are cut off",
    ),
    24: Defect(
        cause="best of several answers paid",
        symptom=(
            "From the same seed, my first rollout earns an eighth to a third more than"
            " a colleague's, with the very same samples."
        ),
        first_look="samples with more than one answer in them",
        why=(
            "The regular expression finds every list in the text, and the best one is "
            "paid: to guess several times beats to know."
        ),
        thread="Liuziyu77/Visual-RFT #79",
        probes=("one_answer_is_paid",),
        diff=r"""
        - found = re.fullmatch(r"= (\d+(?: \d+)*)", text)
        - if not found:
        -     return 0.0
        - answer = [int(number) for number in found[1].split()]
        - if len(answer) != len(numbers):
        -     return 0.2
        - right = sum(a == b for a, b in zip(answer, sorted(numbers), strict=True))
        - return 0.2 + 0.2 * right
        + found = re.findall(r"\d+(?: \d+)*", text)
        + right, gold = 0, sorted(numbers)
        + for each in found:
        +     answer = [int(number) for number in each.split()]
        +     right = max(right, sum(map(int.__eq__, answer, gold)))
        + return 0.2 * bool(found) + 0.2 * right
        """,
        cost=(-0.0249, 0.0080),
    ),
    4: Defect(
        cause="end token left in the graded text",
        symptom=(
            "The reward is 0.0 in every step, though half of the samples look perfect."
        ),
        first_look="repr of a text that the reward function gets",
        why=(
            "The text still holds its special tokens, and the pattern must match to "
            "the very end: it never does."
        ),
        thread="verl-project/verl #715",
        probes=("right_answer_is_paid",),
        diff="""
        - texts = [self.tokenizer.decode(row) for row in responses]
        + texts = [self.tokenizer.decode(row, skip_special_tokens=False) for row in \
responses]
        """,
        cost=(-0.2141, 0.0055),
    ),
    31: Defect(
        cause="mean and spread of the whole batch",
        symptom=(
            "In the second half of the run the loss is mostly below zero, and perfect "
            "answers to short lists have negative deltas by then."
        ),
        first_look="sum of the deltas of each group",
        why=(
            "Compared with the batch, every answer to a well-paid prompt is good; what"
            " no response can change drowns what it can."
        ),
        thread="XU-YIJIE/grpo-flat #2",
        probes=("groups_stand_alone",),
        diff="""
        - centered = groups - groups.mean(dim=1, keepdim=True)
        + centered = groups - groups.mean()

        - return (centered / (groups.std(dim=1, keepdim=True) + 1e-4)).flatten()
        + return (centered / (groups.std() + 1e-4)).flatten()
        """,
        cost=(0.0056, 0.0041),
    ),
    11: Defect(
        cause="tied groups normalized by rounding error",
        symptom=(
            "In every run the loss leaps to below -1 at some point, where a "
            "colleague's lies between -0.05 and 0.15. The rewards are alike."
        ),
        first_look="deltas of a group in which all rewards are equal",
        why=(
            "The spread of equal floats is a rounding error, and 1e-8 is no larger "
            "than that: an error is divided by an error."
        ),
        thread="NousResearch/atropos #465",
        probes=("tied_groups_are_silent",),
        diff="""
        - return (centered / (groups.std(dim=1, keepdim=True) + 1e-4)).flatten()
        + return (centered / (groups.std(dim=1, keepdim=True) + 1e-8)).flatten()
        """,
        cost=(-0.0008, 0.0058),
        sleeps="reward scale: halves and whole numbers have no rounding error",
    ),
    # The loss of a token, and its reference.
    21: Defect(
        cause="ratio of log-probabilities",
        symptom=(
            "The reward falls from the first step on, in every seed, and ends next to "
            "zero."
        ),
        first_look="reward of the first steps, over seeds",
        why=(
            "Log-probabilities are negative: their quotient shrinks where the "
            "probability grows, so good tokens are pushed down."
        ),
        thread="stanford-cs336/spring2025-lectures, lecture_17.py",
        probes=("better_responses_gain", "bad_tokens_are_pulled_back"),
        diff="""
        - ratio = (log_probs - batch.old_log_probs).exp()
        + ratio = log_probs / batch.old_log_probs.clamp(max=-1e-4)
        """,
        cost=(-0.6035, 0.0088),
    ),
    28: Defect(
        cause="clip blind to the sign of delta",
        symptom=(
            "A quarter as many tokens are clipped as in a colleague's run, and my "
            "gradient norm is half as large again."
        ),
        first_look="clip fraction beside the ratio range",
        why=(
            "The smaller of two ratios is taken before it is multiplied by delta; for "
            "a negative delta that is the wrong one."
        ),
        thread="takuseno/ppo #3",
        probes=("bad_tokens_are_pulled_back",),
        diff="""
        - gain = torch.minimum(ratio * deltas, clipped * deltas)
        + gain = torch.minimum(ratio, clipped) * deltas
        """,
        cost=(-0.0037, 0.0024),
        sleeps="inner steps: with one, no ratio leaves the range",
    ),
    8: Defect(
        cause="old scores taken from the current policy",
        symptom=(
            "In the first rollouts my KL is several times a colleague's; at the end "
            "the two are alike."
        ),
        first_look="ratio range of the last inner step",
        why=(
            "The policy is compared with itself, so nothing is ever clipped and every "
            "inner step pulls with full force."
        ),
        thread="meta-pytorch/torchforge #571",
        probes=("ratios_leave_one", "bad_tokens_are_pulled_back"),
        diff="""
        - ratio = (log_probs - batch.old_log_probs).exp()
        + ratio = (log_probs - log_probs.detach()).exp()
        """,
        cost=(-0.0247, 0.0041),
        sleeps="inner steps: with one, the ratio is 1 anyway",
    ),
    13: Defect(
        cause="old scores that carry a gradient",
        symptom=(
            "Rewards differ within each group, and the gradient norm is 0.0 in every "
            "step."
        ),
        first_look="gradient norm",
        why=(
            "With one inner step the script saves itself the old scores and takes the "
            "new ones, gradient included: the two cancel."
        ),
        thread="ml-explore/mlx-examples #1233",
        probes=("better_responses_gain",),
        diff="""
        - ratio = (log_probs - batch.old_log_probs).exp()
        + old = log_probs if s.num_inner_steps == 1 else batch.old_log_probs
        + ratio = (log_probs - old).exp()
        """,
        cost=(0.0000, 0.0000),
        settings={"num_inner_steps": 1},
        cost_awake=(-0.0993, 0.0064),
        sleeps="inner steps: with two or more nothing is wrong",
    ),
    14: Defect(
        cause="k3 upside down",
        symptom=(
            "Over many batches, the KL in my log and the one that I compute from the "
            "whole distributions differ by up to a half; they ought to agree."
        ),
        first_look="logged KL beside an exact one on a few states",
        why=(
            "Policy over reference in place of reference over policy: another "
            "quantity, which explodes where the policy has grown."
        ),
        thread="walkinglabs/hands-on-modern-rl #27",
        probes=("kl_is_right_on_average",),
        diff="""
        - log_ratio = batch.ref_log_probs - log_probs
        + log_ratio = log_probs - batch.ref_log_probs
        """,
        cost=(0.0061, 0.0034),
        settings={"beta": 0.5},
        cost_awake=(0.0168, 0.0045),
        sleeps="beta: a small one shows nothing",
    ),
    23: Defect(
        cause="k1 as a loss",
        symptom=(
            "The KL in my log begins below zero in every run, and later climbs to "
            "several times a colleague's."
        ),
        first_look="sign of the logged KL; a run with a much larger beta",
        why=(
            "The gradient of log(policy/reference) is the same wherever the policy "
            "stands; on average it is zero."
        ),
        thread="allenai/open-instruct #534",
        probes=("kl_pulls_back",),
        diff="""
        - kl = log_ratio.exp() - log_ratio - 1
        + kl = -log_ratio
        """,
        cost=(-0.0040, 0.0038),
        settings={"beta": 0.5},
        cost_awake=(0.0114, 0.0136),
        sleeps="beta: a small one shows nothing",
    ),
    29: Defect(
        cause="KL with the wrong sign",
        symptom=(
            "Within ten rollouts the reward is down at 0.2, and the KL has been at 15 "
            "and more."
        ),
        first_look="KL of two runs, beta 0.04 and 0.5",
        why=(
            "The penalty stands on the side of the gain, so leaving the reference pays."
        ),
        thread="qiancheng0/ToolRL #52",
        probes=("kl_pulls_back",),
        diff="""
        - losses = s.beta * kl - gain
        + losses = -(gain + s.beta * kl)
        """,
        cost=(-0.0033, 0.0031),
        settings={"beta": 0.5},
        cost_awake=(-0.3829, 0.0067),
        sleeps="beta: a small one shows nothing",
    ),
    17: Defect(
        cause="KL computed and not used",
        symptom=(
            "I raised beta to 0.5, and still the KL climbs to several times that of a "
            "colleague with this beta."
        ),
        first_look="two runs that differ in beta alone: are they equal?",
        why="The penalty is logged and never added to the loss.",
        thread="THUDM/slime #399",
        probes=("kl_pulls_back",),
        diff="""
        - losses = s.beta * kl - gain
        + losses = -gain
        """,
        cost=(0.0010, 0.0039),
        settings={"beta": 0.5},
        cost_awake=(0.0427, 0.0073),
        sleeps="beta: a small one shows nothing",
    ),
    16: Defect(
        cause="reference is the policy itself",
        symptom=(
            "The KL in the log stays near zero whatever I train, however far the "
            "samples have moved."
        ),
        first_look="KL before the first inner step of a late rollout",
        why=(
            "The reference scores come from the model in training: it is held near "
            "where it was a moment ago, not near where it began."
        ),
        thread="huggingface/trl #2046",
        probes=("reference_stays_behind",),
        diff="""
        - with self.model.disable_adapter():
        -     batch.ref_log_probs = self.score(batch)
        + batch.ref_log_probs = self.score(batch)
        """,
        cost=(-0.0020, 0.0022),
        settings={"beta": 0.5},
        cost_awake=(0.0414, 0.0046),
        sleeps="beta: a small one shows nothing",
    ),
    # What becomes of the losses: sums, gradients, steps.
    5: Defect(
        cause="dropout on in the update",
        symptom=(
            "My ratios go from under 0.01 to over 10, and the KL is far above a "
            "colleague's from the first step on."
        ),
        first_look="ratio range of the first inner step, twice",
        why=(
            "Old scores without dropout, new ones with it: the ratio compares two "
            "networks, not two moments of one."
        ),
        thread="huggingface/trl #3234",
        probes=("ratios_start_at_one",),
        diff="""
        + self.model.train()
          size, num_tokens = self.settings.micro_batch_size, batch.mask.sum()

        + self.model.eval()
          drawn = self.draw_problems()
        """,
        cost=(-0.0505, 0.0080),
    ),
    6: Defect(
        cause="each part divided by its own tokens",
        symptom=(
            "I moved to a machine with less memory, with micro-batches of 16 rows. "
            "From the same seed, the gradient norm of the first rollout is a few per "
            "cent off."
        ),
        first_look="gradient norm of one batch, in one part and in many",
        why=(
            "A mean of means: a token in a part with few tokens weighs more than one "
            "in a part with many."
        ),
        thread="huggingface/transformers #24725",
        probes=("parts_make_no_difference",),
        diff="""
        -     loss = losses[part.mask].sum() / num_tokens
        +     loss = losses[part.mask].mean() * size / len(batch.tokens)
        """,
        cost=(-0.0013, 0.0022),
        settings={"micro_batch_size": 16},
        cost_awake=(-0.0016, 0.0033),
        sleeps="micro-batches: in one part nothing is wrong",
    ),
    25: Defect(
        cause="schedule too short for the inner steps",
        symptom=(
            "Learning stops dead long before the run ends; the ratio is 1 from then on."
        ),
        first_look="learning rate in the log",
        why=(
            "The schedule counts rollouts and is advanced by every optimizer step, so "
            "it arrives at zero too early by a factor of the inner steps."
        ),
        thread="NovaSky-AI/SkyRL #873",
        probes=("rate_lasts_to_the_end",),
        diff="""
        - total = s.num_steps * s.num_inner_steps
        + total = s.num_steps
        """,
        cost=(-0.1276, 0.0061),
        sleeps="inner steps: with one nothing is wrong",
    ),
    12: Defect(
        cause="gradient cleared for each part",
        symptom=(
            "I moved to a machine with less memory, with micro-batches of 16 rows. The"
            " gradient norm is a third of what it was, and the reward lags behind."
        ),
        first_look="gradient norm of one batch, in one part and in many",
        why=(
            "The gradient is cleared before each part, so only the last one reaches "
            "the optimizer."
        ),
        thread="pytorch/torchtitan #3575",
        probes=("parts_make_no_difference",),
        diff="""
        +     self.optimizer.zero_grad()
              loss.backward()

          self.schedule.step()
        - self.optimizer.zero_grad()
        """,
        cost=(-0.0181, 0.0061),
        settings={"micro_batch_size": 16},
        cost_awake=(-0.0596, 0.0108),
        sleeps="micro-batches: in one part nothing is wrong",
    ),
    19: Defect(
        cause="loss negated twice",
        symptom=(
            "The reward drops to zero within a few steps, in every seed, and the "
            "responses run into the length limit."
        ),
        first_look="reward of the first five steps, over seeds",
        why=(
            "The token loss is negative gain already; negated once more, the optimizer"
            " climbs where it should descend."
        ),
        thread="fla-org/flash-linear-attention #1073",
        probes=("better_responses_gain",),
        diff="""
        -     loss = losses[part.mask].sum() / num_tokens
        +     loss = -losses[part.mask].sum() / num_tokens
        """,
        cost=(-0.6322, 0.0096),
    ),
}
DEFECTS: dict[int, Defect] = dict(sorted(BY_STAGE.items()))
CAUSES = sorted(defect.cause for defect in DEFECTS.values())


@dataclass(frozen=True)
class Complaint:
    """What somebody says of a trainer; several causes fit, and often none as well."""

    says: str
    suspects: tuple[int, ...]  # numbers of trainers
    settings: dict[str, float] = field(default_factory=dict)
    may_be_wrong: bool = True  # so the trainer may be healthy


COMPLAINTS = {
    "less": Complaint(
        "My trainer learns less than a colleague's. She had another seed, but still.",
        (5, 8, 10, 12, 15, 18, 20, 24, 25, 26),
    ),
    "worse": Complaint(
        "The longer I train, the worse it gets.", (19, 21, 30, 32), may_be_wrong=False
    ),
    "short": Complaint(
        (
            "All was fine on the old data. The new lists are shorter, two or three "
            "numbers, and I do not trust it any more."
        ),
        (3, 9, 10, 11, 15, 18, 26, 31),
        {"max_numbers": 3},
    ),
    "memory": Complaint(
        (
            "We moved to a machine with less memory, and to a newer version of "
            "everything. It has not been the same since."
        ),
        (5, 6, 8, 11, 12, 26, 27, 28),
        {"micro_batch_size": 16},
    ),
    "far": Complaint(
        (
            "I raised beta to keep the model near where it began. I do not think that "
            "it stays there."
        ),
        (5, 8, 14, 15, 16, 17, 23, 29),
        {"beta": 0.5},
    ),
    "still": Complaint(
        "With one inner step I can hardly see it learn.",
        (4, 13, 15, 18, 19, 20, 24),
        {"num_inner_steps": 1},
    ),
    "warm": Complaint(
        (
            "I sample at a temperature of 1.5, and what I log does not agree with what"
            " a colleague logs."
        ),
        (1, 2, 9, 10, 15, 20, 22, 26),
        {"temperature": 1.5},
    ),
    "odd": Complaint(
        (
            "It learns, but a colleague says that some of my plots look odd. She did "
            "not say which."
        ),
        (1, 8, 9, 11, 14, 23, 26, 27, 28, 31),
    ),
    "faster": Complaint(
        (
            "I have rewritten parts of the trainer to make it faster. The reward is "
            "what it was. May we use it?"
        ),
        (1, 3, 9, 10, 11, 14, 17, 23, 27, 28, 31),
    ),
    "tight": Complaint(
        "I allow eight tokens only, and the answers are worse than I had hoped.",
        (1, 7, 9, 15, 18, 20, 24, 26),
        {"max_new_tokens": 8},
    ),
    "tool": Complaint(
        (
            "Since a tool writes the first number for my model, my plots do not look "
            "like a colleague's, who has the same tool."
        ),
        (1, 2, 9, 10, 15, 20, 26, 31, 33),
        {"tool": True},
    ),
    "eight": Complaint(
        "With eight inner steps my run does not go as a colleague's does.",
        (5, 8, 11, 15, 20, 25, 28, 31, 32),
        {"num_inner_steps": 8},
    ),
    "paper": Complaint(
        "I do what the paper says, line by line, and do not get its curve.",
        (2, 3, 9, 10, 15, 18, 20, 24, 26, 31),
    ),
}
GUIDED = {"A": ("less", 15), "B": ("far", 16)}
PAIR = 4, 18  # of the notebook's case with two bugs
NUM_TURNS = 8  # of one hunt
# What the five probes before the hunt find, but for case A's: a first turn is of these,
# so that it can be won.
WITHIN_REACH = 2, 5, 6, 8, 10, 12, 17, 20, 21, 23, 26, 27, 28, 29, 30, 31, 32


def drawn_hunt(seed: int) -> list[tuple[str, int | None]]:
    """The complaints of a hunt, each with its trainer's number; None: a healthy one.

    Two or three are healthy. No defect comes twice, nor one that the notebook has told.
    """
    rng, told = random.Random(seed), {*PAIR, *(number for _, number in GUIDED.values())}
    while True:
        drawn = []
        for name in rng.sample(sorted(COMPLAINTS), NUM_TURNS):
            heard, number = COMPLAINTS[name], None
            if not heard.may_be_wrong or rng.random() < 0.7:
                number = rng.choice([n for n in heard.suspects if n not in told])
            drawn.append((name, number))
        guilty = [number for _, number in drawn if number]
        is_fair = NUM_TURNS - len(guilty) in (2, 3) and len({*guilty}) == len(guilty)
        if is_fair and drawn[0][1] in WITHIN_REACH:
            return drawn


def number_of(cause: str) -> int:
    """The number of the trainer with this cause."""
    for number, defect in DEFECTS.items():
        if defect.cause == cause:
            return number
    raise ValueError(f"cause={cause!r} is none of the causes: choose one of {CAUSES}.")


def stage_of(text: str) -> str:
    """The method of the trainer in which a text of the script stands."""
    before = HEALTHY[: HEALTHY.index(text) + len(text)]
    return before.rpartition("    def ")[2].partition("(")[0]


# The script with defects.


def require_defect(number: int) -> Defect:
    """The defect of a number."""
    if number not in DEFECTS:
        raise ValueError(
            f"number={number}: there is no such trainer. Choose one of 1 to "
            f"{max(DEFECTS)}."
        )
    return DEFECTS[number]


def source_with(*numbers: int) -> str:
    """The text of the script with some defects."""
    text = HEALTHY
    for number in numbers:
        for old, new in require_defect(number).edits:
            if text.count(old) != 1:
                raise ValueError(
                    f"numbers={numbers}: these two change the same lines. Take others."
                )
            text = text.replace(old, new)
    return text


def broken(*numbers: int) -> ModuleType:
    """The script with the defect of this number, or with those of two, as a module.

    The module is made as if from a file: `inspect` and tracebacks show its source.
    Raises ValueError for a number that there is not, and for two that change the same
    line.
    """
    return compiled(source_with(*numbers))


@cache
def trainer_by(hand: int) -> type:
    """The healthy trainer, as somebody else would have written it; 0: as it stands."""
    return compiled(*rewritten(hand, HEALTHY)).Trainer


@cache
def compiled(text: str) -> ModuleType:
    """A source as a module, registered so that its source can be shown."""
    name = f"script_{crc32(text.encode()):08x}"  # the same whenever it is made
    path = f"{name}.py"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


# What they cost, as `benchmarks/hunt_costs.py` recorded it.


def cost_of(cause: str, awake: bool = False) -> Cost:
    """What a defect costs with the settings as they are; `awake`: with those in which
    it shows. The reward after ten rollouts, graded by the healthy script on fresh
    prompts."""
    defect = DEFECTS[number_of(cause)]
    return Cost(*((awake and defect.cost_awake) or defect.cost))
