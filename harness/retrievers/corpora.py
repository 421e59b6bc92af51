"""Which indexes a retriever searches; checks that they are of one corpus, and of that of the questions."""

from collections.abc import Sequence, Set
from itertools import chain

from common.errors import ArtifactError
from common.records import Passage, Question
from harness.indexing.index_folder import Index
from harness.interfaces import Retriever
from harness.runtime.retriever_tree import inner


def indexes_of(*retrievers: object) -> list[Index]:
    """The indexes that retrievers, or systems, search, directly or through the retrievers that they combine.

    None for other retrievers.
    """
    found = (getattr(each, "index", None) for retriever in retrievers for each in inner(retriever))
    return [index for index in found if isinstance(index, Index)]


def passages_of(*retrievers: Retriever | None) -> Sequence[Passage] | None:
    """What the first index holds as retrievers return it: its passages, or the parent sections of segments.

    None without an index.
    """
    for each in (each for retriever in retrievers for each in inner(retriever)):
        if isinstance(passages := getattr(each, "passages", None), Sequence):
            return passages
        if isinstance(index := getattr(each, "index", None), Index):
            return index.stored
    return None


def index_records(searching: object) -> list[dict[str, object]]:
    """Folder, size and identity of the indexes that a retriever, or system, searches, for a report."""
    return [{"folder": str(each.folder), "passages": each.passages, **each.recipe} for each in indexes_of(searching)]


def check_same_corpus(retrievers: Sequence[Retriever]) -> None:
    """Refuse indexes of different corpora: their results must not be mixed or compared.

    Raises:
        ArtifactError: If the corpus fingerprints of two indexes differ; names both.
    """
    indexes = indexes_of(*retrievers)
    for other in indexes:
        if other.corpus != indexes[0].corpus:
            raise ArtifactError(
                f"{indexes[0].folder} and {other.folder} are indexes of different corpora ({indexes[0].corpus[:12]}, "
                f"{other.corpus[:12]}): their results cannot be combined or compared. Build both from the same "
                "--corpus files."
            )


def gold_of(questions: Sequence[Question]) -> set[str]:
    """Ids of the gold passages of all questions."""
    return {id_ for question in questions for id_ in question.support}


def absent_gold(searching: object, gold: Set[str]) -> set[str] | None:
    """The gold passages that are in no index; None without an index folder or gold passages.

    Args:
        searching: A retriever or a system; one index of each corpus that it searches is read.
        gold: Ids of the gold passages of all questions.

    Raises:
        ArtifactError: If no gold passage is in the index: it is of another corpus.
    """
    indexes = indexes_of(searching)
    if not indexes or not gold:
        return None
    absent = set(gold)
    for passage in chain.from_iterable(each.stored for each in {i.corpus: i for i in indexes}.values()):
        absent.discard(passage.id)
        if not absent:
            break
    if absent == gold:
        kind = indexes[0].recipe["kind"]
        raise ArtifactError(
            f"{indexes[0].folder} is an index of another corpus: it holds none of the {len(gold)} gold passages of "
            f"these questions. Index their corpus: infer.py index --corpus FILE --kind {kind} --out FOLDER."
        )
    return absent
