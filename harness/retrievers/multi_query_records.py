"""Costs and notes of a search with several queries: which query found which passage."""

from common.chat import named_calls
from harness.retrievers.multi_query import ORIGINAL, MultiQueryHits


def counts(found: MultiQueryHits, tokens: float) -> dict[str, float]:
    """The costs of one question that are counted."""
    own = {"retriever_calls": float(len(found.searches)), "model_calls": float(found.scored), "tokens": tokens}
    named = named_calls(found.rewrites.costs, "rewriter") if found.rewrites else {}
    if failed := sum(bool(search.failure) for search in found.searches):
        named["failed_searches"] = float(failed)
    return {name: own.get(name, 0.0) + named.get(name, 0.0) for name in {**own, **named}}


def explanation(found: MultiQueryHits) -> dict[str, object]:
    """The notes of one question's answer; see `harness.systems.dmqr.Dmqr`."""
    queries: list[dict[str, object]] = [
        {
            "query": search.query,
            "made_by": list(search.made_by),
            "found": [hit.passage.id for hit in search.hits],
            "alone": [{"id": each.id, "title": each.title} for each in found.alone(place)],
            **({"error": search.failure} if search.failure else {}),
        }
        for place, search in enumerate(found.searches)
    ]
    passages = []
    for hit in found.ranked:
        ranks = found.ranks(hit.passage.id)
        own = next((rank for place, rank in ranks.items() if ORIGINAL in found.searches[place].made_by), None)
        shown = {
            "found_by": ", ".join(f"{'/'.join(found.searches[place].made_by)} {rank}" for place, rank in ranks.items())
        }
        passages.append({"id": hit.passage.id, "rank": own, **(shown if len(found.searches) > 1 else {})})
    notes: dict[str, object] = {"queries": queries, "passages": passages}
    if found.rewrites and found.rewrites.fallbacks:
        notes["fallbacks"] = dict(found.rewrites.fallbacks)
    if found.rewrites and found.rewrites.reason:
        notes["reason"] = found.rewrites.reason
    return notes
