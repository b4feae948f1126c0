"""Logarithms, probabilities, bounds, and what carries a gradient."""

from grpo_course.classroom.old_check.rules.rule import rule

RULES = (
    rule(
        "exp lost",
        "You stop at a logarithm: the exp is missing.",
        "A.exp() => A",
        "A.expm1() => A",
    ),
    rule(
        "one not taken away",
        "exp of zero is 1: a 1 has to be taken away, so that nothing is left where "
        "both policies agree.",
        "A.expm1() => A.exp()",
    ),
    rule(
        "logarithms divided",
        "You divide logarithms. A quotient of probabilities is exp of a difference of "
        "their logarithms.",
        "(A - B).exp() => A / B",
        "(A - B).exp() => (A / B).exp()",
    ),
    rule(
        "exp too early",
        "You leave the logarithms too early: exp of a very negative number is zero, "
        "and 0/0 is not a number. Subtract first, exp last.",
        "(A - B).exp() => A.exp() / B.exp()",
        "torch.nn.functional.logsigmoid(A) => A.sigmoid().log()",
    ),
    rule(
        "log too late",
        "softmax rounds an unlikely token to zero, and log(0) is infinite. "
        "log_softmax does both at once and stays finite.",
        "A.log_softmax(dim=B) => A.softmax(dim=B).log()",
    ),
    rule(
        "log of padded softmax",
        "A small number added before the logarithm changes every score, and bounds "
        "the unlikely ones. log_softmax needs none.",
        "A.log_softmax(dim=B) => (A.softmax(dim=B) + 1e-8).log()",
    ),
    rule(
        "log lost",
        "These are probabilities: the logarithm is missing.",
        "A.log_softmax(dim=B) => A.softmax(dim=B)",
        "torch.nn.functional.logsigmoid(A) => A.sigmoid()",
    ),
    rule(
        "log added",
        "These are logarithms of weights. The weights themselves are asked for.",
        "A.softmax(dim=B) => A.log_softmax(dim=B)",
    ),
    rule(
        "not normalized",
        "These are raw logits. They have to be normalized over the vocabulary first.",
        "A.log_softmax(dim=B) => A",
        "A.softmax(dim=B) => A",
    ),
    rule(
        "detach lost",
        "",  # general advice names the argument
        "A.detach() => A",
    ),
    rule(
        "min for max",
        "You take the larger of two where the smaller is asked for, or the other way "
        "round.",
        "A.minimum(B) => A.maximum(B)",
        "A.maximum(B) => A.minimum(B)",
        "A.amax(dim=B) => A.amin(dim=B)",
        "A.amin(dim=B) => A.amax(dim=B)",
    ),
    rule(
        "min lost",
        "You keep only one of the two that have to be compared.",
        "A.minimum(B) => A",
        "A.minimum(B) => B",
    ),
    rule(
        "clamp one-sided",
        "You bound on one side only.",
        "A.clamp(B, C) => A.clamp(min=B)",
        "A.clamp(B, C) => A.clamp(max=C)",
    ),
    rule(
        "clamp two-sided",
        "You bound on both sides. One of the two is left open here.",
        "A.clamp(max=1.2) => A.clamp(0.8, 1.2)",
    ),
    rule(
        "clamp turned",
        "You bound from the wrong side: min= keeps what is larger, max= what is "
        "smaller.",
        "A.clamp(min=B) => A.clamp(max=B)",
        "A.clamp(max=B) => A.clamp(min=B)",
    ),
    rule(
        "clamp lost",
        "A bound is missing.",
        "A.clamp(B, C) => A",
        "A.clamp(max=B) => A",
    ),
    rule(
        "floor lost",
        "Where nothing is counted you divide zero by zero. Give the divisor a floor.",
        "A.clamp(min=B) => A",
    ),
    rule(
        "floor too high",
        "Your floor is so high that it changes what was right already.",
        "A.clamp(min=1) => A + 1",
        "A.clamp(min=1) => A.clamp(min=2)",
    ),
    rule(
        "difference squared",
        "You square a difference. That is another measure: small ones count for less, "
        "and the sign is lost.",
        "A.expm1() - A => A ** 2 / 2",
        "A.expm1() - A => A ** 2",
        "A.expm1() - A => A.abs()",
    ),
    rule(
        "difference of probabilities",
        "You take a difference of probabilities. Here it is one of their logarithms.",
        "A - B => A.exp() - B.exp()",
    ),
    rule(
        "logarithm for probability",
        "You use a logarithm where the probability itself is the weight, or the other "
        "way round.",
        "A * B => A.log() * B",
        "A * B => A * B.exp()",
    ),
    rule(
        "gradient in part",
        "The values are right, but the exp no longer carries a gradient: it was "
        "detached on the way.",
        "A.exp() => A.detach().exp()",
        "A.expm1() => A.detach().expm1()",
    ),
    rule(
        "linear for exp",
        "1 + x is exp(x) only near zero. The exp itself is asked for.",
        "A.exp() => 1 + A",
    ),
)
