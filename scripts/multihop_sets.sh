# The multi-hop data sets whose official files are under data/, and the retriever that fuses their indexes: read by the other scripts.
python=${PYTHON:-python}

# name, layout, training file, dev file
sets="hotpotqa hotpotqa data/hotpotqa/hotpot_distractor_train.json.gz data/hotpotqa/hotpot_distractor_dev.json.gz
2wiki twowiki data/2wikimultihopqa/2wiki_train.json.gz data/2wikimultihopqa/2wiki_dev.json.gz
musique musique data/musique/musique_ans_train.jsonl.gz data/musique/musique_ans_dev.jsonl.gz"

retrievers() { # of a data set: dense retrieval, BM25 and title links, as configs/infer/drrag_hotpotqa_links.yaml fuses them
  local part kinds=(dense.DenseRetriever dense bm25.Bm25Retriever bm25 links.LinkRetriever links)
  part=$(printf "{class_path: harness.retrievers.%s, init_args: {index: indexes/$1-%s}}, " "${kinds[@]}")
  printf '[%s]' "${part%, }"
}
