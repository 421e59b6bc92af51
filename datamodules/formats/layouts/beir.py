"""Layout of queries with their qrels: BEIR's folders (Thakur et al., 2021) and TREC's files.

`FOLDER:SPLIT` names `queries.jsonl` and `qrels/SPLIT.tsv` of a folder, `QUERIES:QRELS` two files of any names
(`datamodules.formats.trec`), from which rows `{_id, text, qrels: {document: grade}}` are made.
"""

from common.records import Gold, Question, clean
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row
from datamodules.formats.trec import check_id

REQUIRED_FIELDS = ("_id", "text", "qrels")


def question(row: Row) -> Question:
    """A query whose gold passages are the documents with a grade above 0; all grades are kept.

    Raises:
        DataError: If a field is missing or of the wrong type, or an id has a blank.
    """
    grades: dict[str, float] = {}
    for document, grade in fields.as_object(fields.get(row, "qrels"), "field 'qrels'").items():
        number = fields.optional_number({document: grade}, document) or 0.0
        if number < 0:
            fields.note("a negative grade", "read as 0, not relevant")
        grades[clean(check_id(document, "field 'qrels'"))] = max(0.0, number)
    return Question(
        id=check_id(fields.identity(row, "_id"), "field '_id'"),
        text=fields.filled_text(row, "text"),
        gold=Gold(corpus_ids=tuple(id_ for id_, grade in grades.items() if grade), grades=tuple(grades.items())),
    )
