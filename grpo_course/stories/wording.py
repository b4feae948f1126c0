"""The sentences of the stories, in parts.

A pattern has places: {A} and {B} are two people (A is a name at first, then he or she),
{n} is a number with the things it counts, {more} the same with "more", {bare} a number
alone. `[a|b]` are the wordings that make sentences different frames; `(a|b)` is
decoration around a frame. A pattern with both stands for many sentences.
"""

LEAD = "(|Then |Later |After that, |The next day, )"
WHEN = "(| today| at the {place}| in the morning| on {day}| at school)"

PATTERNS: dict[str, tuple[str, ...]] = {
    "start": (
        "[{A} has|{A} owns|{A} keeps|{A} brings|{A} starts with|{A} begins with] {n}.",
        "(At first|To begin with|In the beginning|On Sunday), {A} [has|had] {n}.",
        "{A} [has collected|has saved|has made|has found|has bought|has packed] {n}.",
        "There are {n} [in {A's} bag|on {A's} desk|in {A's} room|on {A's} shelf].",
        "{A's} [basket|box|drawer|jar|backpack] [holds|contains] {n}.",
        "{A} [gets|receives] {n} for {A's} birthday.",
    ),
    "late_start": (
        "[Before that|At first|In the beginning], {A} had {n}.",
        "{A} [had|owned] {n} [before|before that|at the start].",
        "{A} [started|began] with {n}.",
    ),
    "gain": (
        LEAD + "{A} [gets|finds|buys|picks|collects|receives|wins|makes] {more}" + WHEN,
        LEAD + "{A} [is given|is sent|is handed] {more}" + WHEN,
        LEAD + "{friend} [gives|brings|sends|hands|lends] {A.} {more}" + WHEN,
        LEAD + "{A} [adds] {more} [to them|to the rest|to what {A} has].",
        LEAD + "[{more} arrive|{more} are added|{A} comes home with {more}].",
        LEAD + "{A} [goes out and gets|comes back with|takes home] {more}.",
    ),
    "lose": (
        LEAD + "{A} [loses|sells|breaks|drops|uses|gives away|throws away] {n}" + WHEN,
        LEAD + "{A} [gives|sends|hands|lends|sells] {n} to {friend}" + WHEN,
        LEAD + "{friend} [takes|buys|borrows] {n} from {A.}" + WHEN,
        LEAD + "{friend} [takes|buys|borrows] {bare} of {them}" + WHEN,
        LEAD
        + "{bare} of {them} [are lost|are sold|are broken|are gone|are taken away].",
        LEAD + "{A} [has to give back|gives up|leaves behind|parts with] {n}.",
    ),
    "times": (
        LEAD + "{A} [has|owns|counts] {times} as many.",
        LEAD + "{A's} number [grows|goes up] to {times} as many.",
        LEAD + "there are {times} as many [as before|of them|now].",
    ),
    "half": (
        LEAD + "{A} [gives away|loses|sells|uses|breaks] half of {them}" + WHEN,
        LEAD + "half of {them} [are sold|are lost|are broken|are gone|are given away].",
        LEAD + "{friend} [takes|gets|buys] half of {them}" + WHEN,
    ),
    "groups": (
        "{A} [has|buys|packs|fills|brings] {holders} [with|of] {bare} {things} each.",
        "{A's} [shop|room] has {holders} [with|of] {bare} {things} each.",
        "[Each|Every one] of {A's} {holders} [holds|has|contains] {bare} {things}.",
        "{A} [puts|finds|keeps|counts] {bare} {things} in each of {holders}.",
        "{A} [makes|buys|collects|sells] {bare} {things} [a|every|each] day "
        "for {days}.",
        "[For {days}|On each of {days}], {A} [makes|finds|gets] {bare} {things} a day.",
        "{A} [gives|hands] {bare} {things} to each of {members}.",
    ),
    "more_groups": (
        LEAD
        + "{A} [buys|gets|finds|brings|adds] {holders} [with|of] {bare} more each.",
        LEAD + "{friend} [gives|brings] {A.} {holders} [with|of] {bare} each.",
        LEAD + "{A} [gets|buys|makes] {bare} more [a|each|every] day for {days}.",
    ),
    "fewer_groups": (
        LEAD + "{A} [gives|hands|sends|sells] {bare} to each of {members}.",
        LEAD + "{A} [uses|sells|loses] {bare} [a|each|every] day for {days}.",
        LEAD + "each of {members} [takes|gets|buys] {bare} from {A.}.",
    ),
    "other": (
        "{B} [has|owns|keeps|finds|buys|collects|brings] {n}.",
        "{B} [has collected|has made|has saved|was given] {n}.",
    ),
    "other_more": (
        "{B} [has|owns|finds|buys|collects|makes] {bare} more {things?} than {A.}.",
        "{B} has as many {things} as {A.} [and {bare} more|plus {bare} more].",
        "{A} has {bare} [fewer|less] than {B}.",
    ),
    "other_fewer": (
        "{B} [has|owns|finds|buys|collects|makes] {bare} fewer {things?} than {A.}.",
        "{B} has {bare} [less than|fewer than] {A.}.",
        "{A} has {bare} more {things?} than {B}.",
    ),
    "other_times": (
        "{B} [has|owns|finds|buys|collects|makes] {times} as many {things?} as {A.}.",
        "{B}'s number [of {things} is|is] {times} {A's}.",
    ),
    "other_half": (
        "{B} [has|owns|finds|buys|collects|makes] half as many {things?} as {A.}.",
        "{A} has twice as many {things?} as {B}.",
    ),
    "ask": (
        "How many {things} [does {A} have|does {A} own|are there|has {A} got] now?",
        "How many {things} [does {A} have left|are left|remain]?",
        "How many [does {A} have|are there] [in the end|in all|in total|altogether]?",
        "[What is the number of {things} now|So how many {things} are there now]?",
        "How many {things} [does that make|is that] [in all|in total]?",
        "[Find|Work out|Say] how many {things} {A} has now.",
    ),
    "ask_other": (
        "How many {things} [does {B} have|does {B} own|has {B} got|belong to {B}]?",
        "[What is the number of {B}'s {things}|So how many {things} are {B}'s]?",
        "[Find|Work out] how many {things} {B} has.",
    ),
    "ask_both": (
        "How many {things} do {A} and {B} have [together|in all|in total|altogether]?",
        "How many {things} do [they|the two|both of them] have [together|in total]?",
        "[What is the total|What is their total] number of {things}?",
        "[Find|Work out] the total number of {things}.",
    ),
    "ask_difference": (
        "How many more {things} does {larger} have than {smaller}?",
        "How many fewer {things} does {smaller} have than {larger}?",
        "[What is the difference between|How far apart are] {A's} number and {B}'s?",
        "By how much do {A's} and {B}'s numbers [differ|of {things} differ]?",
    ),
    "distractor": (
        "{A} is {bare} years old.",
        "{A} [lives|works] {bare} [streets|miles] from [the market|school].",
        "{friend} has {bare} {others}.",
        "{A} [also|] [has|sees|owns] {bare} {others}.",
        "The [shop|market|school] [opens|closes] in {bare} minutes.",
        "The [bus|train] [comes|leaves] in {bare} minutes.",
        "It is {bare} degrees outside.",
        "[There are|{friend} counts] {bare} {others} on the table.",
    ),
}
# With money, some roles have words of their own, and the others are left out.
MONEY: dict[str, tuple[str, ...]] = {
    "start": (
        "[{A} has|{A} has saved|{A} starts with|{A} goes out with|{A} brings] {n}.",
        "There are {n} in {A's} [pocket|purse|wallet|piggy bank].",
        "(At first|On Monday), {A} [has|had] {n}.",
    ),
    "late_start": PATTERNS["late_start"],
    "gain": (
        LEAD + "{A} [earns|gets|finds|saves|is paid|is given|wins] {more}" + WHEN,
        LEAD + "{friend} [gives|pays|lends|sends] {A.} {more}" + WHEN,
        LEAD + "{A} [earns|gets] {more} for [helping at home|walking a dog|work].",
    ),
    "lose": (
        LEAD + "{A} [spends {n} on|pays {n} for] [lunch|a book|a ticket|a game|a hat].",
        LEAD + "{A} [buys|gets] a [book|hat|game|cake] for {n}" + WHEN,
        LEAD + "{A} [loses|spends|gives away|lends {friend}] {n}" + WHEN,
    ),
    "groups": (
        "{A} [earns|saves|gets|is paid] {bare} dollars [a|every|each] day for {days}.",
        "{A} [sells] {goods} [for|at] {bare} dollars each.",
        "[Each|Every one] of {members} [gives|pays] {A.} {bare} dollars.",
    ),
    "more_groups": (
        LEAD + "{A} [sells] {goods} [for|at] {bare} dollars each.",
        LEAD + "{A} [earns|saves] {bare} dollars [a|each|every] day for {days}.",
    ),
    "fewer_groups": (
        LEAD + "{A} [buys|gets|orders] {goods} [for|at] {bare} dollars each.",
        LEAD + "{A} [buys|pays for] {goods} [that cost|costing] {bare} dollars each.",
        LEAD + "{A} [spends|pays] {bare} dollars [a|each|every] day for {days}.",
    ),
    "other": ("{B} [has|has saved|earns|finds|brings] {n}.",),
    "other_more": ("{B} [has|saves|earns] {bare} more dollars than {A.}.",),
    "other_fewer": ("{B} [has|saves|earns] {bare} fewer dollars than {A.}.",),
    "other_times": (
        "{B} [has|saves|earns] {times} as [many dollars|much money] as {A.}.",
    ),
    "other_half": ("{B} [has|saves|earns] half as [many dollars|much money] as {A.}.",),
    "ask": (
        "How [many dollars|much money] does {A} have [now|left|in the end|in all]?",
        "How many dollars [are left|does that leave|does that make]?",
        "How much money [is left|is that in all|does that make]?",
    ),
    "ask_other": ("How [many dollars|much money] does {B} have?",),
    "ask_both": (
        "How [many dollars|much money] do [they|{A} and {B}] have [together|in all]?",
    ),
    "ask_difference": (
        "How [many more dollars|much more money] does {larger} have than {smaller}?",
    ),
    "distractor": PATTERNS["distractor"],
}
