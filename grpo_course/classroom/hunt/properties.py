"""What the course's probes ask, and which defects break what is asked, by meaning."""

from collections.abc import Callable
from dataclasses import dataclass

from grpo_course.classroom.hunt import probes, probes_of_learning
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS, number_of


@dataclass(frozen=True)
class Property:
    """Something that holds of every healthy trainer.

    A probe of it must fire for each cause in `broken_by`. Whether it fires for one in
    `open_to` depends on how it looks; for all other causes the property holds.
    """

    says: str
    broken_by: tuple[str, ...]
    open_to: tuple[str, ...] = ()

    def must_find(self) -> set[int]:
        """Numbers of the trainers that break it."""
        return {number_of(cause) for cause in self.broken_by}

    def must_not(self) -> set[int]:
        """Numbers of the trainers of which it holds."""
        named = {*self.broken_by, *self.open_to}
        return {number_of(cause) for cause in CAUSES if cause not in named}


NOTHING_MOVES = ("end token left in the graded text",)  # no reward, so no update
WIDE_MASKS = (
    "padding counted as response",
    "prompt trained along with the response",
    "mask shifted by one token",
)
OTHER_SCORES = (
    "temperature missing from the scores",
    "attention mask left out of the scores",
    "responses encoded anew from their text",
    "scores of the next token",
    "rare tokens never sampled, yet scored",
)

PROPERTIES = {
    "own_words_look_likely": Property(
        "What a policy samples at a temperature near zero looks certain to it.",
        ("temperature missing from the scores", "scores of the next token"),
        (*WIDE_MASKS, *OTHER_SCORES),
    ),
    "surprise_equals_entropy": Property(
        "On average over samples, -log pi is the entropy of pi.",
        ("rare tokens never sampled, yet scored", "scores of the next token"),
        (*WIDE_MASKS, *OTHER_SCORES),
    ),
    "padding_leaves_no_trace": Property(
        "Padding in front of a prompt changes no score.",
        ("attention mask left out of the scores",),
    ),
    "mask_keeps_the_response": Property(
        "The mask keeps the tokens of a response up to its end token, and no other.",
        (*WIDE_MASKS, "end token masked as if it were padding"),
        ("responses encoded anew from their text", *NOTHING_MOVES),
    ),
    "trained_on_what_was_sampled": Property(
        "The tokens of the batch are those that were sampled.",
        ("responses encoded anew from their text",),
        ("end token masked as if it were padding",),
    ),
    "groups_share_a_prompt": Property(
        "All responses of a group answer one prompt.", ("groups that mix prompts",)
    ),
    "rewards_fit_their_prompts": Property(
        "A response is graded against the answer to its own prompt.",
        ("reward looks at another prompt's answer",),
        ("cut-off responses paid", *NOTHING_MOVES),
    ),
    "cut_off_pays_nothing": Property(
        "A response without its end token earns nothing.",
        ("cut-off responses paid",),
        ("end token masked as if it were padding",),
    ),
    "one_answer_is_paid": Property(
        "A text with several answers does not earn what the right one alone earns.",
        ("best of several answers paid",),
        NOTHING_MOVES,
    ),
    "right_answer_is_paid": Property(
        "A right answer that ends is paid in full.",
        NOTHING_MOVES,
        ("reward looks at another prompt's answer", "groups that mix prompts"),
    ),
    "tied_groups_are_silent": Property(
        "A group of equal rewards gets deltas of zero.",
        ("tied groups normalized by rounding error",),
        ("mean and spread of the whole batch", "groups that mix prompts"),
    ),
    "groups_stand_alone": Property(
        "The deltas of a group do not depend on other groups.",
        ("mean and spread of the whole batch",),
        ("tied groups normalized by rounding error", "groups that mix prompts"),
    ),
    "ratios_start_at_one": Property(
        "In the first inner step every ratio is one.",
        ("old scores in low precision", "dropout on in the update"),
        ("ratio of log-probabilities",),
    ),
    "ratios_leave_one": Property(
        "In later inner steps ratios differ from one.",
        ("old scores taken from the current policy",),
        (*NOTHING_MOVES, "old scores that carry a gradient"),
    ),
    "better_responses_gain": Property(
        "A step makes the better responses of a group likelier.",
        (
            "ratio of log-probabilities",
            "loss negated twice",
            "old scores that carry a gradient",
        ),
        (*NOTHING_MOVES, "schedule too short for the inner steps"),
    ),
    "bad_tokens_are_pulled_back": Property(
        "A bad token is pulled down at ratio 2, and let go at ratio 1/2.",
        (
            "clip blind to the sign of delta",
            "old scores taken from the current policy",
            "ratio of log-probabilities",
        ),
        ("old scores that carry a gradient", "loss negated twice"),
    ),
    "kl_pulls_back": Property(
        "The KL pulls a token down where the policy is above its reference, and up "
        "where it is below.",
        ("k1 as a loss", "KL with the wrong sign", "KL computed and not used"),
        ("reference is the policy itself", "k3 upside down", "loss negated twice"),
    ),
    "kl_is_right_on_average": Property(
        "Averaged over the policy, the logged KL is the KL.", ("k3 upside down",)
    ),
    "reference_stays_behind": Property(
        "The reference stays where it was while the policy moves.",
        ("reference is the policy itself",),
        (*NOTHING_MOVES, "old scores that carry a gradient"),
    ),
    "parts_make_no_difference": Property(
        "The gradient of a batch does not depend on the size of the micro-batches.",
        ("each part divided by its own tokens", "gradient cleared for each part"),
        ("dropout on in the update",),
    ),
    "rate_lasts_to_the_end": Property(
        "The learning rate reaches zero with the last update, not before.",
        ("schedule too short for the inner steps",),
    ),
}
COURSE_PROBES: dict[str, Callable] = {
    name: getattr(probes, name, None) or getattr(probes_of_learning, name)
    for name in PROPERTIES
}
FOUND_BY = {number: defect.probe for number, defect in DEFECTS.items()}
