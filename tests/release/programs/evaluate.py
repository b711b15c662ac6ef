"""The extra `evaluate`: a chain is measured, and what comes out can be shown and kept."""

import tempfile
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from langchain_selfroute import SelfRouteChain
from selfroute.evaluation import evaluate

minutes = Document("Ms Okafor chaired the meeting.")
llm = FakeListChatModel(responses=["Ms Okafor"])
chain = SelfRouteChain(retriever=RunnableLambda(lambda _: [minutes]), llm=llm, documents=[minutes])
result = evaluate(chain, [{"question": "Who chaired the meeting?", "answers": ["Okafor", "Ms Okafor"]}])
assert list(result.frame["score"]) == [1.0] * 4
assert "long" in str(result)
with tempfile.TemporaryDirectory() as folder:
    result.save(folder)
    assert [path for path in Path(folder).iterdir() if path.suffix == ".html"]
