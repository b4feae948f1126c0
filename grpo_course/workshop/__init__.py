"""The commands of `python3 -m grpo_course`, and the rules the notebooks keep.

A command each
    lab            JupyterLab
    tests          `test`: style, imports, tests, notebooks
    run            execute the notebooks, write nothing
    save           execute the notebooks, store their outputs
    progress       what a learner has done
    bench          the benchmarks
    site           the website
    api_page       its page of names, from the docstrings
    browser_tests  `test-browser`: JupyterLab, slides, website in Chromium

What the commands share
    workspace      the learner's copies, brought up to date without losing anything
    kernels        the variables notebooks are executed with
    widget_state   what buttons and sliders show stays in a saved notebook
    notebooks      find the notebooks and execute them

What a stored notebook is
    cells          tags, and the cells that `save` writes
    exercise_cells  the three cells of an exercise, and its minutes
    prediction_cells  a question, and the output that is closed until it runs
    form           how it must be stored, how it opens and closes
    tidy           what varies between executions is dropped
    slides         the place of each cell among the slides
    minutes        the minutes that authors state, and the tables they stand in
    anywhere       the links to Colab and Binder
    pictures       the plots that the README shows
"""
