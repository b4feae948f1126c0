"""JupyterLab, started by a command of the course; drive and read a notebook in it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from grpo_course.classroom import record

STARTUP_SECONDS = 120
PRINTED = re.compile(r"(http://127\.0\.0\.1:\d+)/\S+\?token=(\w+)")
SETTINGS = {
    # Every cell is in the page, so that one look sees all of them.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "docmanager-extension/plugin": {"autosave": False},
}
OPTIONS = [
    "--no-browser",
    "--ServerApp.port=0",
    "--LabApp.expose_app_in_browser=True",  # window.jupyterapp, which the tests read
]


class Server:
    """What it has printed, the address there, and others on it, with the token."""

    def __init__(self, log):
        self.log = log
        self.printed = PRINTED.search(log.read_text(encoding="utf-8"))

    def __call__(self, path):
        return f"{self.printed[1]}/{path}?token={self.printed[2]}"


@contextmanager
def serve(command, root, private, *named):
    """Start a command in a checkout without a user's settings; Ctrl-C at the end."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    environment.pop(record.STORED, None)  # the tests click as a learner does
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        environment[name] = str(private / name)
    for name, values in SETTINGS.items():
        folder = private / "JUPYTER_CONFIG_DIR" / "lab" / "user-settings"
        path = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    log = private / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "grpo_course", command, *named, *OPTIONS],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            # Who runs the tests in the background may have Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        end = time.monotonic() + STARTUP_SECONDS
        while not Server(log).printed and time.monotonic() < end:
            time.sleep(0.3)
        try:
            yield Server(log)
        finally:
            os.killpg(server.pid, signal.SIGINT)
            server.wait(30)


RUN_SECONDS = 900  # word problems train for minutes
NOTEBOOK = "window.jupyterapp?.shell.currentWidget"
OPENED = f"""() => {NOTEBOOK}?.content?.widgets?.length > 1
  && {NOTEBOOK}.sessionContext.session?.kernel?.status === 'idle'"""
SHUT_DOWN = f"() => {NOTEBOOK}.sessionContext.shutdown()"
# Every cell as the model has it and as the page shows it.
READ = f"""() => {NOTEBOOK}.content.widgets.map((widget, index) => {{
  const model = widget.model.sharedModel, node = widget.node;
  const shown = node.querySelector('.jp-MarkdownOutput');
  const text = shown ? shown.cloneNode(true) : document.createElement('p');
  text.querySelectorAll('mjx-container, code, pre').forEach(e => e.remove());
  return {{
    index, source: model.getSource(),
    tags: (model.getMetadata() || {{}}).tags || [],
    outputs: widget.model.type === 'code' ? model.getOutputs() : [],
    text: text.textContent,
    badFormulas: node.querySelectorAll('mjx-merror, [data-mjx-error]').length,
    unfolded: node.querySelectorAll('details[open]').length,
    deadPictures: [...node.querySelectorAll('img')].filter(i => !i.naturalWidth).length,
    answer: (node.querySelector('.jp-Cell-outputArea') || {{}}).innerText || '',
  }};
}})"""


def command(page, name, cell=None, given=None):
    """Run a command of JupyterLab's menus, to its end, where `cell` is selected."""
    start = f"""([name, cell, given]) => {{
      window.finished = false;
      if (cell !== null) {NOTEBOOK.replace("?", "")}.content.activeCellIndex = cell;
      window.jupyterapp.commands.execute(name, given)
        .then(() => window.finished = true, e => window.finished = String(e)); }}"""
    page.evaluate(start, [name, cell, given or {}])
    page.wait_for_function("() => window.finished", timeout=RUN_SECONDS * 1000)
    page.wait_for_timeout(2000 if name == "docmanager:save" else 500)  # still drawn


def read(page):
    """Every cell: its source, tags and outputs, and what the page shows of it."""
    return page.evaluate(READ)


def replace_and_run(page, index, source):
    """Type `source` into a cell and run it; what it then shows."""
    command(page, "notebook:enter-edit-mode", index)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    command(page, "notebook:run-cell")
    return read(page)[index]["answer"]
