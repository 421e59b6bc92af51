"""What the project writes, in each of its kinds: how a tiny one is made, and what a user does with it then."""

from dataclasses import dataclass

SYSTEM, RETRIEVER = "--system harness.systems", "harness.retrievers"
BM25 = f"--system.retriever {RETRIEVER}.bm25.Bm25Retriever --system.retriever.index bm25"
DENSE = "dense.DenseRetriever --system.retriever.precision fp32"
VECTORS = "dense --dense.encoder encoder --dense.precision fp32"
ASKED, HOTPOT = "--questions questions.json", "--layout hotpotqa"
PLAIN = f"{SYSTEM}.retrieve_read.RetrieveRead --system.k 4"
DRRAG = f"{SYSTEM}.drrag.DrRag {BM25} --system.precision fp32 --system.selection.k 4 --system.serving"
RERAG = f"{SYSTEM}.rerag.ReRag {BM25} --system.precision fp32 --system.contexts 4 --system.serving"
DMQR = f"{SYSTEM}.dmqr.Dmqr {BM25} --system.fusion rrf --system.strategies [gqr,kwr]"
REWRITES = "harness.rewriters.trained.TrainedRewriter --system.rewriter.precision fp32 --system.rewriter.serving"
REWRITER = f"{DMQR} --system.rewriter {REWRITES}"
WORDS = REWRITER.replace("trained.Trained", "extractive.Extractive").replace("gqr", "par")
MSRAG = "--config msrag.json --system.selector harness.answer_selection.learned.LearnedSelector --system.selector.file"
MANUALS = "--questions segments.jsonl --layout flashrag"
KILLED = "--retriever tests.helpers.killing_retriever.KillingRetriever --retriever.index many --questions many.json"
DOCUMENTS = "index --documents world/manuals --kind bm25 --workers 1 --reading.document_cache documents --out"
ONNX = """import json, numpy, onnxruntime
model = onnxruntime.InferenceSession("exported/onnx/model.onnx")
given = {each.name: numpy.arange(24).reshape(2, 12) % 2 for each in model.get_inputs()}
print(json.dumps([each.tolist() for each in model.run(None, given)]))"""


@dataclass(frozen=True)
class Artefact:
    """Files of one kind.

    Args:
        name: For the table.
        files: What is damaged, a file or all of a folder; a row of the table for each file name.
        use: Command that reads them: infer.py's, or train.py's or Python's where it begins so.
        made: Commands that write them; NAME=VALUE before one is a variable of its environment.
        result: File or folder whose content counts, which `use` writes; without one what `use` prints.
    """

    name: str
    files: str
    use: str
    made: tuple[str, ...] = ()
    result: str = ""


def asked(name: str, files: str, system: str, *made: str, questions: str = ASKED) -> Artefact:
    """What answering questions reads."""
    return Artefact(name, files, f"ask {system} {questions} --json true", made)


def index(kind: str, retriever: str, folder: str, corpus: str = f"{HOTPOT} --corpus questions.json") -> Artefact:
    """An index, which is searched."""
    searched = f"{PLAIN} --system.retriever {RETRIEVER}.{retriever} --system.retriever.index {folder}"
    return asked(f"index {folder}", folder, searched, f"index {corpus} --kind {kind} --out {folder}")


def served(kind: str, folder: str, system: str, *made: str) -> Artefact:
    """A serving folder, whose name ends the system's options."""
    return asked(f"serving folder: {kind}", folder, f"{system} {folder}", *made)


def fitted(name: str, system: str, option: str, more: str = "", questions: str = ASKED, *made: str) -> Artefact:
    """A file that `tune` writes."""
    file = f"fitted/{name}.json"
    return asked(f"fitted {name}", file, f"{system} {option} {file}", *made,
                 f"tune {system} {questions} {more} --out {file}", questions=questions)  # fmt: skip


def evaluated(name: str, files: str, system: str, *made: str) -> Artefact:
    """What an evaluation reads."""
    command = f"evaluate {system} {ASKED} --out reports"
    return Artefact(name, files, f"{command}/second", made or (f"{command}/first",), "reports/second/report.csv")


def fit(name: str, config: str, files: str, second: str = "--name again") -> Artefact:
    """What a training leaves to a second one."""
    first = f"train.py fit --config {config}.json --name {config}"
    again = second if second.startswith("--name") else f"--name {config} {second}"
    return Artefact(name, files, f"{first} {again}", (first,), f"checkpoints/{again.split()[1]}/last.ckpt")


def journal(command: str, batches: int, more: str = "", *made: str) -> Artefact:
    """What a command that was killed has kept."""
    line, out = f"{command} {KILLED} {more} --out {command}.jsonl", f"{command}.jsonl"
    return Artefact(f"journal: {command}", f"{out}.partial", line, (*made, f"KILLED_AT_SEARCH={batches} {line}"), out)


ARTEFACTS = [
    index("bm25", "bm25.Bm25Retriever", "bm25"),
    index("keywords", "keywords.KeywordRetriever", "keywords"),
    index("links", "links.LinkRetriever", "links"),
    index(VECTORS, DENSE, "dense"),
    index(f"{VECTORS} --dense.faiss_index HNSW32", DENSE, "faiss"),
    index("bm25", "bm25.Bm25Retriever", "above-16-MiB", "--corpus large.jsonl"),
    Artefact("index above-16-MiB, infer.py verify", "above-16-MiB", "verify --index above-16-MiB"),
    Artefact("documents that were read", "documents", f"{DOCUMENTS} again", (f"{DOCUMENTS} manuals",), "again"),
    served("classifier", "serving/drrag", DRRAG),
    served("estimator and generator", "serving/rerag", RERAG),
    served("reranker", "serving/reranker", RERAG),
    served("rewriter", "serving/rewriter", REWRITER),
    served("extractive rewriter", "serving/extractive", WORDS),
    served("adapter", "checkpoints/causal/serving", REWRITER, "train.py fit --config causal.json --name causal"),
    asked("export merged", "exported/merged", f"{PLAIN} {BM25} --llm merged.json",
          "export --serving checkpoints/causal/serving --form merged --out exported/merged"),
    Artefact("export ONNX", "exported/onnx", f"python {ONNX}", ("export --serving serving/drrag --out exported/onnx",)),
    fitted("selection", f"{DRRAG} serving/drrag", "--system.selection_file"),
    fitted("prior", f"{RERAG} serving/rerag", "--system.prior", "--tuning.fits prior"),
    fitted("weights", "--config hiqa.json", "--system.retriever.weights", "", MANUALS,
           f"index --documents world/manuals --out manuals-dense --kind {VECTORS}"),
    asked("fitted selector", "serving/selector.json", f"{MSRAG} serving/selector.json"),
    evaluated("fitted temperatures", "fitted/temperatures.json",
              f"{RERAG} serving/rerag --study.temperatures fitted/temperatures.json",
              f"tune {RERAG} serving/rerag {ASKED} --out fitted/temperatures.json"),
    fit("checkpoints", "resumed", "checkpoints/resumed/*.*", "--resume auto --trainer.max_epochs 3"),
    fit("cached rows of triples", "drrag_stored", "cache/triples"),
    fit("cached rows of contexts", "rerag_stored", "cache/contexts"),
    fit("cached numbers", "rerag_frozen", "cache/numbers"),
    journal("mine", 3, "", f"index {HOTPOT} --corpus many.json --kind bm25 --out many"),
    journal("label", 5, "--passages 2 --limit 40"),
    evaluated("journal: memo", "memo", f"{DRRAG} serving/drrag --memo memo"),
    asked("replies (SQLite)", "cache/llm", f"{PLAIN} {BM25} --llm endpoint.json",
          f"ask {PLAIN} {BM25} --llm endpoint.json {ASKED}"),
]  # fmt: skip
