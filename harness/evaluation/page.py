"""The HTML page of a report: tables, plots and a browser of the questions, in one file without external references.

The template, the style sheet and the script lie in `page_template/`; the browser's data are JSON inside the page
(`harness.evaluation.page_data`).  The content security policy allows this one script and this one style sheet, by their
hashes, and images inside the page: a text that became markup by mistake would still run nothing and load nothing.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from string import Template

from common.records import Answer, Question
from common.shown_text import html
from harness.evaluation.page_data import QuestionCase, browser_data
from harness.evaluation.tables import ReportTable, html_paragraphs, tables_html

__all__ = ["QuestionCase", "page"]
_TEMPLATE = Path(__file__).with_name("page_template")


def page(
    title: str,
    facts: Sequence[str],
    tables: Sequence[ReportTable],
    notes: str,
    plots: Mapping[str, bytes],
    questions: Sequence[Question],
    systems: Mapping[str, Sequence[Answer]],
    measures: Mapping[str, Mapping[str, Iterable[float]]],
    cases: Sequence[Sequence[QuestionCase]] = (),
) -> str:
    """The page as text; write it as UTF-8.

    Args:
        title: Heading.
        facts: Lines on data, models, seed and time.
        tables: As in the Markdown report.
        notes: Text below the tables; blank lines separate paragraphs.
        plots: Caption -> PNG.
        questions: All questions of the report.
        systems: System -> its answer to every question, in the same order.  The first is the one the report is about.
        measures: System -> measure -> value per question, 0 to 1; NaN where it is undefined.  The first measure that is
            defined for some question decides for all systems whether they are right (1) or wrong.
        cases: Tables about each question, in the same order; empty for none.
    """
    style, script = _read("page.css"), _read("page.js") + _read("details.js")
    figures = [
        f'<figure><img src="data:image/png;base64,{b64encode(png).decode()}" alt="{html(caption)}">'
        f"<figcaption>{html(caption)}</figcaption></figure>"
        for caption, png in plots.items()
    ]
    blocks = browser_data(questions, systems, measures, cases)
    return Template(_read("page.html")).substitute(
        title=html(title),
        facts="".join(f"<li>{html(fact)}</li>" for fact in facts),
        tables=tables_html(tables),
        plots="\n".join(figures),
        notes=html_paragraphs(notes, "note"),
        data="\n".join(f'<script type="application/json" id="{id_}">{json}</script>' for id_, json in blocks),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
    )


def _read(name: str) -> str:
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A content security policy's name for an inline script or style sheet."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
