"""Answers to the exercises of notebook 12: planted mistakes, and right ones."""

GATHER = "return scores.gather(-1, chosen[..., None]).squeeze(-1)"

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "response_scores": [
        (
            "scores = logits[:, prompt_length:].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER,
            "have read it already",
        ),
        (
            "scores = logits[:, prompt_length:-1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length + 1 :]\n" + GATHER,
            "lose the first response token",
        ),
        (
            "scores = logits[:, :-1].log_softmax(-1)\n"
            "chosen = tokens[:, 1:]\n" + GATHER,
            "score the prompt as well",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER + ".sum(1)",
            "sum over pos",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1]\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER,
            "raw logits",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length - 1 : -1]\n" + GATHER,
            "shift the logits and the tokens",
        ),
    ],
    "diagnose": [
        (
            "if end['tied_groups'] > 0.8:\n    return 'too hard'\n"
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "return 'rate too high' if fell else 'learns'",
            "Ask the accuracy which it is",
        ),
        (
            "if end['accuracy'] > start['accuracy']:\n    return 'learns'\n"
            "if end['tied_groups'] <= 0.8:\n    return 'rate too high'\n"
            "return 'too hard' if end['accuracy'] < 0.1 else 'format alone'",
            "rises with the form alone",
        ),
        (
            "if end['tied_groups'] <= 0.8:\n    return 'learns'\n"
            "if end['accuracy'] < 0.1:\n    return 'too hard'\n"
            "return 'format alone' if end['accuracy'] < 0.9 else 'learns'",
            "hides sums that got worse",
        ),
        (
            "if end['accuracy'] < 0.1:\n    return 'too hard'\n"
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "return 'rate too high' if fell and end['format'] < 1 else 'learns'",
            "nearly all groups are tied",
        ),
        (
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "if end['tied_groups'] > 0.8 and end['accuracy'] > 0.1:\n"
            "    return 'format alone'\n"
            "if end['tied_groups'] > 0.8:\n    return 'too hard'\n"
            "return 'rate too high' if fell else 'learns'",
            "ask for an accuracy below 0.9",
        ),
    ],
}

# name of the exercise -> a right answer that is written differently
LOOPS = {
    "response_scores": (
        "rows = []\n"
        "for row, text in zip(logits, tokens):\n"
        "    places = range(prompt_length, len(text))\n"
        "    scores = [row[t - 1].log_softmax(0)[text[t]] for t in places]\n"
        "    rows.append(torch.stack(scores))\n"
        "return torch.stack(rows)"
    ),
    "diagnose": (
        "tied, right = end['tied_groups'] > 0.8, end['accuracy']\n"
        "if tied and right < 0.9:\n"
        "    return 'too hard' if right < 0.1 else 'format alone'\n"
        "change = end['lenient_accuracy'] - start['lenient_accuracy']\n"
        "return 'learns' if change >= -0.1 else 'rate too high'"
    ),
}
