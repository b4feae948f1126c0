"""What a learner touches: the setup, the shown source, the exercises, the plots.

A notebook begins
    setup         seed, threads, printed digits, the style of plots; what is installed
    show          the package's own source in the notebook

Exercises
    check         judges an answer and says what is wrong with it

Guesses
    predict       asks before a result is seen, and counts what was right
    verdict       says whether a claim or an expectation still holds
    record        keeps guesses and exercises in a file beside the notebook

Pictures and tables
    plots         what several notebooks draw with
    alt_text      a picture in words, for who cannot see it
    live          curves and bars that move while a run trains
    moving        films, and questions that a slider answers, also without a kernel
"""
