"""One deck of slides for a plan: live in JupyterLab, and a folder that opens from disk.

build    the notebook: the sections of a plan, notes, and unseen what their code needs
spoken   a part of a talk as cells
needs    which statements that is
fold     what of a code cell stands on a slide
guess    a question with its choices
shown    a code cell or a text as a room sees it
stage    the cells on slides
slide    one of them: its title, its cells, how large it is written
heights  about how high they stand
offline  the folder: reveal.js and MathJax from the installed packages
"""
