"""Citations as nodes, for user interfaces that show the nodes of a response."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llamaindex_selfroute.convert import LABEL


def citation_nodes(response: RESPONSE_TYPE) -> list[NodeWithScore]:
    """Return the citations of a response as nodes, best first.

    Each has the text, the offsets (`start_char_idx`, `end_char_idx`) and the score of its citation, and the metadata of
    the source node that it is from, with the citation's `page` if that is known. Its `NodeRelationship.SOURCE` leads to
    that node.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteQueryEngine, citation_nodes

        minutes = Document(text="The meeting began at ten. Ms Okafor chaired it.")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        engine = SelfRouteQueryEngine.from_index(index, llm=MockLLM(), citations=True)
        best = citation_nodes(engine.query("Who chaired the meeting?"))[0]
        assert best.text == minutes.text[best.node.start_char_idx : best.node.end_char_idx]
        ```

    Args:
        response: The response of an engine or synthesizer with `citations=True`. A stream has to be read first.
    """
    return [_node(citation, response.source_nodes) for citation in (response.metadata or {}).get("citations", ())]


def _node(citation: dict[str, Any], sources: list[NodeWithScore]) -> NodeWithScore:
    of = sources[citation["document"]].node
    page = {"page": citation["page"]} if "page" in citation else {}
    node = TextNode(
        id_=f"{of.node_id}:{citation['start']}-{citation['end']}",
        text=citation["text"],
        start_char_idx=citation["start"],
        end_char_idx=citation["end"],
        metadata={key: value for key, value in of.metadata.items() if key != LABEL} | page,
        excluded_llm_metadata_keys=of.excluded_llm_metadata_keys,
        excluded_embed_metadata_keys=of.excluded_embed_metadata_keys,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=citation["source"])},
    )
    return NodeWithScore(node=node, score=citation["score"])
