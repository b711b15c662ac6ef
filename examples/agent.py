"""Two doors for LangChain's agents: the agent's own answers routed, and tools to look with.

    pip install "selfroute-workbench" langchain-openai
    python examples/agent.py [--model openai:gpt-5-mini]

Prints, for two questions about the document that comes with selfroute, the step that answered and the answer; then what
the tool `find` returns to an agent. Without `--model` recorded replies of a model answer.
"""

from __future__ import annotations

import argparse
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from langchain_selfroute import SelfRouteChain, SelfRouteMiddleware
from selfroute.error_text import one_line
from selfroute_workbench.demo.corpus import question_of
from selfroute_workbench.demo.vectors import demo_store
from selfroute_workbench.demo.with_langchain import RecordedModel

QUESTIONS = [question_of(name) for name in ("minutes-02", "minutes-03")]


def make_agent(llm: Any, store: Any) -> Any:
    """Return an agent whose answers are routed; add tools of your own."""
    reading = SelfRouteMiddleware.from_vectorstore(store, k=5)
    return create_agent(llm, middleware=[reading])


def main() -> None:
    """Ask the agent, and use a tool as an agent would."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="provider:name")
    options = parser.parse_args()
    try:
        llm = init_chat_model(options.model) if options.model else RecordedModel()
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(f"--model {options.model}: {one_line(error)}")
    store = demo_store()
    agent = make_agent(llm, store)
    for question in QUESTIONS:
        state = agent.invoke({"messages": [("user", question)]})
        print(f"{state['selfroute']['route']}: {state['messages'][-1].text}")
    _, find, _ = SelfRouteChain.from_vectorstore(store, llm).tools(max_tokens=300)
    print(find.invoke({"document": "harbour-minutes.md", "words": QUESTIONS[1]}))


if __name__ == "__main__":
    main()
