"""What a single notebook draws, a file a notebook; `classroom.plots` has the rest."""
