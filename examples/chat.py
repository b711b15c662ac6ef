"""A chat in the terminal that remembers the conversation.

    pip install "selfroute-workbench[embeddings]" langchain-openai
    python examples/chat.py                                  # or: --model openai:gpt-5-mini

It asks for a question, then shows the route in brackets and the answer as it arrives. A follow-up question ("And who
paid for it?") is reworded so that it can be understood alone before the retriever gets it; both prompts contain the
history. Ctrl-C stops an answer and the model; an empty line ends the chat. Without `--model` the built-in extractive
reader answers, which is not an LLM; the retriever then simply gets the earlier questions, too.
"""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from operator import itemgetter
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableBranch, RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_selfroute import SelfRouteChain, StoredDocuments
from selfroute.error_text import one_line
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.demo.with_langchain import ExtractiveReader, load_embeddings

REMEMBERED = 10  # messages
REWRITE = """\
Rewrite the question below so that it can be understood without the conversation above. Do not answer it.

Question: {input}
Rewritten:"""


def make_chain(store: Chroma, llm: Runnable[Any, Any], *, rewrite: Runnable[Any, Any]) -> SelfRouteChain:
    """Build the chain: its retriever gets the question as `rewrite` words it."""
    alone = RunnableBranch((lambda inputs: not inputs["chat_history"], itemgetter("input")), rewrite)
    retriever = alone | store.as_retriever(search_kwargs={"k": 5})
    return SelfRouteChain(retriever=retriever, llm=llm, documents=StoredDocuments(store))


def rewriting(llm: Runnable[Any, Any]) -> Runnable[Any, str]:
    """Let a model reword a follow-up question so that it can be understood alone."""
    prompt = ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", REWRITE)])
    return prompt | llm | StrOutputParser()


def joined(inputs: dict[str, Any]) -> str:
    """Put the earlier questions in front of a follow-up question: a rewording without a model."""
    asked = [message.text for message in inputs["chat_history"] if message.type == "human"]
    return " ".join([*asked[-2:], inputs["input"]])


def chat(chain: SelfRouteChain) -> None:
    """Ask, answer and remember until there is no question."""
    history: list[BaseMessage] = []
    for question in iter(ask, ""):
        answer, answerable = "", False
        try:
            with closing(chain.stream({"input": question, "chat_history": history[-REMEMBERED:]})) as chunks:
                for chunk in chunks:
                    print(f"[{chunk['route']}] " if "route" in chunk else "", end="")
                    print(chunk.get("answer", ""), end="", flush=True)
                    answer += chunk.get("answer", "")
                    answerable = chunk.get("answerable", False)
        except KeyboardInterrupt:
            print(" (stopped)", end="")
        except Exception as error:  # noqa: BLE001 - whatever the provider's client raises, the chat goes on
            print(one_line(error), end="")
        print()
        if answerable:  # a refusal in the history would teach the model to write more of them
            history += [HumanMessage(question), AIMessage(answer)]


def ask() -> str:
    """Return the next question, or an empty string at the end of the input."""
    try:
        return input("\n> ").strip()
    except (EOFError, KeyboardInterrupt):
        return ""


def make_store(embeddings: Embeddings) -> Chroma:
    """Index the document that comes with selfroute. Open your own store here."""
    documents = [Document(text, metadata={"source": name}) for name, text in load_documents().items()]
    splitter = RecursiveCharacterTextSplitter(chunk_size=1200, chunk_overlap=200, add_start_index=True)
    return Chroma.from_documents(splitter.split_documents(documents), embeddings)


def main() -> None:
    """Start the chat."""
    parser = ArgumentParser(description="A chat about the document that comes with selfroute.")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="such as openai:gpt-5-mini")
    options = parser.parse_args()
    try:
        llm = init_chat_model(options.model) if options.model else None
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(f"--model {options.model}: {one_line(error)}")
    print("Indexing a long document ...")
    embeddings = load_embeddings()
    store = make_store(embeddings)
    if llm:
        chat(make_chain(store, llm, rewrite=rewriting(llm)))
    else:
        chat(make_chain(store, ExtractiveReader(), rewrite=RunnableLambda(joined)))


if __name__ == "__main__":
    main()
