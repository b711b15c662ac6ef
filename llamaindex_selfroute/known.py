"""The parts of LlamaIndex and its integrations that are trusted, by the full names of their classes.

A class is on a list only if it does what the list says under any configuration. All packages of LlamaIndex, and
those of many others, share the name `llama_index`, so that says nothing.
"""

from __future__ import annotations

from selfroute.documents.access import names_in

BY_RELEVANCE = names_in(
    "llama_index.core.postprocessor",
    {
        "llm_rerank": "LLMRerank",
        "node": "LongContextReorder SimilarityPostprocessor",
        "optimizer": "SentenceEmbeddingOptimizer",
        "rankGPT_rerank": "RankGPTRerank",
        "sbert_rerank": "SentenceTransformerRerank",
        "structured_llm_rerank": "StructuredLLMRerank",
    },
) | names_in(
    "llama_index.postprocessor",
    {
        "bedrock_rerank.base": "AWSBedrockRerank BedrockRerank",
        "cohere_rerank.base": "CohereRerank",
        "colbert_rerank.base": "ColbertRerank",
        "flag_embedding_reranker.base": "FlagEmbeddingReranker",
        "ibm.base": "WatsonxRerank",
        "jinaai_rerank.base": "JinaRerank",
        "mixedbreadai_rerank.base": "MixedbreadAIRerank",
        "nvidia_rerank.base": "NVIDIARerank",
        "pinecone_native_rerank.base": "PineconeNativeRerank",
        "rankgpt_rerank.base": "RankGPTRerank",
        "sbert_rerank.base": "SentenceTransformerRerank",
        "voyageai_rerank.base": "VoyageAIRerank",
    },
)
"""Postprocessors that drop, shorten or reorder nodes by their relevance to the question."""

REPLACING = frozenset({"llama_index.core.postprocessor.metadata_replacement.MetadataReplacementPostProcessor"})
"""Show metadata in the place of a text: of a sentence its window, or anything else."""

UNFILTERED = names_in(
    "llama_index.core.indices",
    {
        "document_summary.retrievers": "DocumentSummaryIndexEmbeddingRetriever DocumentSummaryIndexLLMRetriever",
        "keyword_table.retrievers": "KeywordTableGPTRetriever KeywordTableRAKERetriever KeywordTableSimpleRetriever",
        "list.retrievers": "SummaryIndexEmbeddingRetriever SummaryIndexLLMRetriever SummaryIndexRetriever",
        "tree.all_leaf_retriever": "TreeAllLeafRetriever",
        "tree.select_leaf_embedding_retriever": "TreeSelectLeafEmbeddingRetriever",
        "tree.select_leaf_retriever": "TreeSelectLeafRetriever",
        "tree.tree_root_retriever": "TreeRootRetriever",
    },
)
"""Retrievers that search all of their index and ignore filters."""

TRANSFORMS = names_in(
    "llama_index.core.indices.query.query_transform",
    {
        "base": "DecomposeQueryTransform HyDEQueryTransform IdentityQueryTransform StepDecomposeQueryTransform",
        "feedback_transform": "FeedbackQueryTransformation",
    },
)
"""Change only the question."""

WORDS = frozenset({"llama_index.retrievers.bm25.base.BM25Retriever"})
"""Search their own copies of nodes by words."""
