"""What a language model says of each question's passages: log P(question | passage), log P(answer | passage, question).

    python -m scripts.reproduce_lm.teacher LM FILE [FILE ...] --out OUT [--answers 4]

Each FILE is in FiD's layout.  The prompt is that of `models.prompt_tokenizer`, and is computed once: a passage for all
questions that have it, and each answer from the prompt's keys and values.  Of a question's accepted answers those that
occur in most of its passages are scored.  OUT gets a JSON line for each question and passage, as soon as it is known; a
stopped run resumes.  Runs with other FILEs of the same passages go on with the same OUT.

Shape legend: P prompts, T tokens, V vocabulary, A answer tokens.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import DynamicCache

from common.answer_metrics import has_answer, squad
from common.errors import exit_code
from common.files import write_text
from common.progress import track
from common.records import Passage, Question
from datamodules.formats.reading import read_questions
from models.causal_lm import CausalLanguageModel, next_logits
from models.length_batching import IGNORE, pad
from models.rerag.causal_generator import CausalGenerator, PromptStates

COMMAND = "python -m scripts.reproduce_lm.teacher"
MAX_TOKENS, PASSAGES, ROWS = 256, 8, 32  # of a prompt; passages, and prompts, that are computed together
Asked = tuple[Question, list[str]]  # a question with the answers that are scored


def most_frequent(question: Question, count: int) -> list[str]:
    """The accepted answers that occur in most of the question's passages, without copies by SQuAD's normalization."""
    distinct = {squad(answer): answer for answer in reversed(question.answers)}.values()
    found = {each: sum(has_answer(passage.text, [each]) for passage in question.passages) for each in distinct}
    return sorted((each for each in reversed(found) if found[each]), key=lambda each: -found[each])[:count]


class Teacher:
    """A causal language model without a chat template, which scores questions and answers by passages.

    Args:
        pretrained: Folder or hub id.
    """

    def __init__(self, pretrained: str) -> None:
        self.generator = CausalGenerator(CausalLanguageModel.build(pretrained), MAX_TOKENS).eval()
        self.encode, self.network = self.generator.encode, self.generator.network
        self.before, self.after = (len(self.ids(f"\n{cue}:")) for cue in ("Question", "Answer"))

    def ids(self, text: str) -> list[int]:
        """Token ids of a text within a prompt."""
        return list(self.encode.tokenizer(text, add_special_tokens=False)["input_ids"])

    @torch.inference_mode()
    def passages(self, passages: Sequence[Passage]) -> PromptStates:
        """The states of passages, with which their prompts begin."""
        most = MAX_TOKENS - 36  # room for a question
        read = [(self.encode._head + self.ids(self.encode._body(each)))[:most] for each in passages]
        ids_PT, attention_PT = pad(read, self.encode.pad_id, MAX_TOKENS, left=True)
        cache = DynamicCache(config=self.network.config)
        next_logits(self.network, ids_PT, attention_PT, 1, cache)
        return PromptStates(cache, attention_PT, torch.empty(len(read), 0))

    @torch.inference_mode()
    def score(self, states: PromptStates, asked: Sequence[Asked]) -> list[tuple[float, dict[str, float]]]:
        """log P of each question, and of its answers, by the passage of the same row; nats."""
        ends = [self.ids(f"\nQuestion: {self.encode._clean(one.text)}\n{self.encode.cue}") for one, _ in asked]
        width = max(map(len, ends))
        ids_PT, own_PT = pad(ends, self.encode.pad_id, MAX_TOKENS, length=width, left=True)
        seen_PT = torch.cat([states.attention_PT, own_PT], dim=1)
        logits_PTV = next_logits(self.network, ids_PT, seen_PT, width, states.cache)
        questions = []
        for row, end in enumerate(ends):
            first, last = width - len(end) + self.before, width - self.after
            logp_TV = logits_PTV[row, first - 1 : last - 1].float().log_softmax(1)
            questions.append(float(logp_TV.gather(1, ids_PT[row, first:last, None]).sum()))
        prompts = PromptStates(states.cache, seen_PT, logits_PTV[:, -1].clone())
        del logits_PTV
        pairs = [(row, answer) for row, (_, answers) in enumerate(asked) for answer in answers]
        answered: list[dict[str, float]] = [{} for _ in asked]
        for start in range(0, len(pairs), ROWS):
            rows, texts = zip(*pairs[start : start + ROWS], strict=True)
            labels_PA = self.generator.labels(texts, 32)
            assert (labels_PA != IGNORE).any()
            logp_P = self.generator.answer_logp(prompts.rows(torch.tensor(rows)), labels_PA)
            for row, text, logp in zip(rows, texts, logp_P.tolist(), strict=True):
                answered[row][text] = round(logp, 4)
        return list(zip((round(each, 4) for each in questions), answered, strict=True))


def main() -> None:
    """Write the lines that are missing."""
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("model")
    options.add_argument("files", nargs="+")
    options.add_argument("--out", required=True, type=Path)
    options.add_argument("--answers", type=int, default=4)
    given = options.parse_args()
    text = given.out.read_text(encoding="utf-8") if given.out.exists() else ""
    lines = text[: text.rfind("\n") + 1].splitlines()
    write_text(given.out, "".join(f"{line}\n" for line in lines))  # without what a killed run wrote of a line
    known = {(row["question"], row["passage"]) for row in map(json.loads, lines)}
    todo: dict[Passage, list[Asked]] = defaultdict(list)
    for question in (one for file in given.files for one in read_questions("fid", file)):
        answers = most_frequent(question, given.answers)
        for passage in question.passages:
            if (question.text, passage.id) not in known:
                todo[passage].append((question, answers))
    teacher, order = Teacher(given.model), sorted(todo, key=lambda each: (len(each.text), each.id))
    batches = [order[start : start + PASSAGES] for start in range(0, len(order), PASSAGES)]
    with given.out.open("a", encoding="utf-8") as out:
        for batch in track(batches, len(order), "passages", len):
            states = teacher.passages(batch)
            pairs = [(place, asked) for place, passage in enumerate(batch) for asked in todo[passage]]
            for start in range(0, len(pairs), ROWS):
                rows, asked = zip(*pairs[start : start + ROWS], strict=True)
                scored = teacher.score(states.rows(torch.tensor(rows)), asked)
                for row, (one, _), (logp, answered) in zip(rows, asked, scored, strict=True):
                    line = {"question": one.text, "passage": batch[row].id, "log_p": logp, "answers": answered}
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
