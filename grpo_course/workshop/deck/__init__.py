"""One deck of slides for a plan: live in JupyterLab, and a folder that opens offline."""
