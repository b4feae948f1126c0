"""Drive a notebook in JupyterLab and read what it shows."""

from lab_server import Address
from playwright.sync_api import Page

RUN_SECONDS = 900  # word problems train for minutes
NOTEBOOK = "window.jupyterapp.shell.currentWidget"
OPENED = f"""() => window.jupyterapp && {NOTEBOOK} && {NOTEBOOK}.content
  && {NOTEBOOK}.content.widgets && {NOTEBOOK}.content.widgets.length > 1
  && {NOTEBOOK}.sessionContext.session
  && {NOTEBOOK}.sessionContext.session.kernel
  && {NOTEBOOK}.sessionContext.session.kernel.status === 'idle'"""
START = """() => { window.finished = false;
  window.jupyterapp.commands.execute('runmenu:run-all')
    .then(() => window.finished = true, e => window.finished = String(e)); }"""
IDLE = f"""() => window.finished
  && {NOTEBOOK}.sessionContext.session.kernel.status === 'idle'
  && {NOTEBOOK}.content.widgets.every(w => w.model.type !== 'code'
       || w.model.sharedModel.execution_count !== null)"""
# Every cell as the model has it and as the page shows it.
READ = f"""() => {NOTEBOOK}.content.widgets.map((widget, index) => {{
  const model = widget.model.sharedModel, node = widget.node;
  const shown = node.querySelector('.jp-MarkdownOutput');
  const text = shown ? shown.cloneNode(true) : document.createElement('p');
  text.querySelectorAll('mjx-container, code, pre').forEach(e => e.remove());
  return {{
    index, kind: widget.model.type, source: model.getSource(),
    tags: (model.getMetadata() || {{}}).tags || [],
    outputs: widget.model.type === 'code' ? model.getOutputs() : [],
    text: text.textContent,
    formulas: shown ? shown.querySelectorAll('mjx-container').length : 0,
    badFormulas: node.querySelectorAll('mjx-merror, [data-mjx-error]').length,
    unfolded: node.querySelectorAll('details[open]').length,
    widgets: node.querySelectorAll('.jupyter-widgets').length,
    deadPictures: [...node.querySelectorAll('img')].filter(i => !i.naturalWidth).length,
    answer: (node.querySelector('.jp-Cell-outputArea') || {{}}).innerText || '',
  }};
}})"""


def open_notebook(page: Page, address: Address, path: str) -> None:
    """Open a notebook and wait for its kernel."""
    open_address(page, f"{address(f'lab/tree/{path}')}&reset")


def open_address(page: Page, address: str) -> None:
    """Open the address of a notebook and wait for its kernel."""
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_function(OPENED, timeout=120_000)


def save(page: Page) -> None:
    """Save the notebook as JupyterLab does by itself, every two minutes."""
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")


def run_above(page: Page, index: int) -> None:
    """Run > Run All Above Selected Cell, to the end."""
    page.evaluate(f"i => {{ {NOTEBOOK}.content.activeCellIndex = i; }}", index)
    page.evaluate(START.replace("runmenu:run-all", "notebook:run-all-above"))
    page.wait_for_function("() => window.finished", timeout=RUN_SECONDS * 1000)


def run_all(page: Page) -> None:
    """Run > Run All Cells, to the end."""
    page.evaluate(START)
    page.wait_for_function(IDLE, timeout=RUN_SECONDS * 1000, polling=500)
    page.wait_for_timeout(500)  # the last output is still drawn


def read(page: Page) -> list[dict]:
    """Every cell: its source, tags and outputs, and what the page shows of it."""
    return page.evaluate(READ)


def shut_down(page: Page) -> None:
    """Stop the kernel, so that the next notebook has the cores to itself."""
    page.evaluate(f"() => {NOTEBOOK}.sessionContext.shutdown()")


def replace_and_run(page: Page, index: int, source: str) -> str:
    """Type `source` into a cell, run it with Shift+Enter; what it then shows."""
    page.evaluate(
        f"i => {{ const book = {NOTEBOOK}.content; book.activeCellIndex = i;"
        " book.mode = 'command'; return book.scrollToItem(i, 'center'); }",
        index,
    )
    # A stored count could be the one that it gets.
    page.evaluate("window.jupyterapp.commands.execute('notebook:clear-cell-output')")
    cell = page.locator(".jp-Notebook .jp-Cell").nth(index)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"i => ({COUNT})(i) !== null", arg=index, timeout=60_000)
    page.wait_for_timeout(300)
    return cell.locator(".jp-Cell-outputArea").inner_text()


COUNT = f"i => {NOTEBOOK}.content.widgets[i].model.sharedModel.execution_count"
