"""The commands of `python3 -m grpo_course`, and the rules the notebooks keep.

Before anything is installed: standard library only
    environment    the `.venv` in the checkout, made when needed
    installed      what the running Python has
    pip_options    which torch pip is sent to

A command each
    lab            JupyterLab
    present        `slides`: copies with notes, presented in JupyterLab
    tests          `test`: style, imports, tests, notebooks
    torture        kill runs, race for folders, attack the grader
    run            execute the notebooks, write nothing
    save           execute the notebooks, store their outputs
    progress       what a learner has done
    bench          the benchmarks
    site           the website
    api_page       its page of names, from the docstrings
    browser_tests  `test-browser`: JupyterLab, slides, website in Chromium

What the commands share
    kernels        the variables notebooks are executed with
    notebooks      find the notebooks and execute them

What a stored notebook is
    cells          tags, and the cells that `save` writes
    exercise_cells  the three cells of an exercise, and its minutes
    prediction_cells  a question, and the output that is closed until it runs
    form           how it must be stored
    budgets        how long it and its cells may be
    measure        the lines and words of a cell
    tidy           what varies between executions is dropped
    slides         the place of each cell among the slides
    minutes        what follows from the minutes that authors state
    speaker        notes with minutes for the presenter
    anywhere       the links to Colab and Binder
    pictures       the plots that the README shows
"""
