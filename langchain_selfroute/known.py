"""The parts of LangChain and its partners' packages that are trusted, by the full names of their classes.

A class is on a list only if it does what the list says under any configuration.
"""

from __future__ import annotations

from selfroute.documents.access import names_in

_COMPRESSORS = "langchain_classic.retrievers.document_compressors"
_WRITTEN = "langchain_classic.chains.query_constructor"

PIPELINE = f"{_COMPRESSORS}.base.DocumentCompressorPipeline"
"""Compresses as its parts do."""

BY_RELEVANCE = (
    names_in(
        _COMPRESSORS,
        {
            "chain_extract": "LLMChainExtractor",
            "chain_filter": "LLMChainFilter",
            "cohere_rerank": "CohereRerank",
            "cross_encoder_rerank": "CrossEncoderReranker",
            "embeddings_filter": "EmbeddingsFilter",
            "listwise_rerank": "LLMListwiseRerank",
        },
    )
    | names_in(
        "langchain_community",
        {
            "document_compressors.dashscope_rerank": "DashScopeRerank",
            "document_compressors.flashrank_rerank": "FlashrankRerank",
            "document_compressors.infinity_rerank": "InfinityRerank",
            "document_compressors.jina_rerank": "JinaRerank",
            "document_compressors.llmlingua_filter": "LLMLinguaCompressor",
            "document_compressors.openvino_rerank": "OpenVINOReranker",
            "document_compressors.rankllm_rerank": "RankLLMRerank",
            "document_compressors.volcengine_rerank": "VolcengineRerank",
            "document_transformers.embeddings_redundant_filter": "EmbeddingsClusteringFilter EmbeddingsRedundantFilter",
            "document_transformers.long_context_reorder": "LongContextReorder",
        },
    )
    | names_in(
        "langchain_text_splitters",
        {
            "base": "TokenTextSplitter",
            "character": "CharacterTextSplitter RecursiveCharacterTextSplitter",
            "latex": "LatexTextSplitter",
            "markdown": "MarkdownTextSplitter",
            "nltk": "NLTKTextSplitter",
            "python": "PythonCodeTextSplitter",
            "sentence_transformers": "SentenceTransformersTokenTextSplitter",
            "spacy": "SpacyTextSplitter",
        },
    )
    | {
        "langchain_aws.document_compressors.rerank.BedrockRerank",
        "langchain_cohere.rerank.CohereRerank",
        "langchain_google_community.vertex_rank.VertexAIRank",
        "langchain_ibm.rerank.WatsonxRerank",
        "langchain_nvidia_ai_endpoints.reranking.NVIDIARerank",
        "langchain_pinecone.rerank.PineconeRerank",
        "langchain_voyageai.rerank.VoyageAIRerank",
    }
)
"""Compressors that drop, shorten, cut or reorder passages by their relevance to the question or to one another."""

TRANSLATORS = names_in(
    "langchain_community.query_constructors",
    {
        "astradb": "AstraDBTranslator",
        "chroma": "ChromaTranslator",
        "dashvector": "DashvectorTranslator",
        "databricks_vector_search": "DatabricksVectorSearchTranslator",
        "deeplake": "DeepLakeTranslator",
        "dingo": "DingoDBTranslator",
        "elasticsearch": "ElasticsearchTranslator",
        "hanavector": "HanaTranslator",
        "milvus": "MilvusTranslator",
        "mongodb_atlas": "MongoDBAtlasTranslator",
        "myscale": "MyScaleTranslator",
        "neo4j": "Neo4jTranslator",
        "opensearch": "OpenSearchTranslator",
        "pgvector": "PGVectorTranslator",
        "pinecone": "PineconeTranslator",
        "qdrant": "QdrantTranslator",
        "redis": "RedisTranslator",
        "supabase": "SupabaseVectorTranslator",
        "tencentvectordb": "TencentVectorDBTranslator",
        "timescalevector": "TimescaleVectorTranslator",
        "vectara": "VectaraTranslator",
        "weaviate": "WeaviateTranslator",
    },
) | {"langchain_postgres.translator.PGVectorTranslator"}
"""Translate a filter that a model wrote, and add nothing to it."""

QUERY_PROMPTS = names_in(
    "langchain_core.prompts",
    {
        "chat": "ChatPromptTemplate",
        "few_shot": "FewShotPromptTemplate",
        "few_shot_with_templates": "FewShotPromptWithTemplates",
        "prompt": "PromptTemplate",
    },
)
"""Ask a model for a query with a filter."""

QUERY_PARSERS = frozenset({f"{_WRITTEN}.base.StructuredQueryOutputParser"})
"""Read the reply of a model, with the function below that parses its filter."""

FILTER_PARSERS = names_in(
    f"{_WRITTEN}.base",
    {"StructuredQueryOutputParser.from_components": "<locals>.ast_parse"},
) | {f"{_WRITTEN}.base.fix_filter_directive"}
"""Functions that parse a filter, and add nothing to it."""

LARK = "lark.lark.Lark.parse"
"""Parses a filter into what its transformer makes of it."""

FILTER_TRANSFORMERS = frozenset({f"{_WRITTEN}.parser.QueryTransformer"})
"""Make of a filter what it says."""
