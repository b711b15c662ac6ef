#!/usr/bin/env bash
# Evaluate all three strategies on real documents and questions, with recorded replies of real models.
#
#   benchmarks/evaluate_shared.sh SHARED [WORK]
#
# SHARED holds the documents and the recordings, which are not part of this project. WORK keeps questions and
# replies, so that a second run is fast and an interrupted one can go on. The tables go to benchmarks/results. Nothing
# leaves the machine, and no key is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
shared=${1:?name the folder with the documents and recordings, which are not part of this project}
work=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/selfroute/evaluate}
bin=${BIN:-.venv/bin}
results=benchmarks/results
export HF_HUB_OFFLINE=1
mkdir -p "$work" "$results"
"$bin/python" benchmarks/shared_questions.py "$shared" "$work/questions"

evaluate() { # NAME DATA... -- OPTIONS...: run, and keep the tables
  local name=$1 data=() status=0
  shift
  while [ "$1" != -- ]; do data+=("$work/questions/$1.jsonl"); shift; done
  shift
  "$bin/python" -m benchmarks.paper "${data[@]}" --out "$work/$name" "$@" \
    > "$work/$name.txt" || status=$?
  cp "$work/$name.txt" "$results/$name.txt"
  echo "$name: exit code $status, tables in $results/$name.txt"
}

# The extractive reader is not a language model: this shows retrieval, routing, metrics and tables at work on real
# documents, but not how well a model would answer.
evaluate extractive quality qmsum squad2_article natural_question hotpotqa_pool passkey -- --k 1,5,20
evaluate extractive-retrievers squad2_article hotpotqa_pool qmsum -- --retriever all-MiniLM-L6-v2,bm25,window,tree,raptor \
  --limit 20

# Replies that real models gave to another retriever's passages and to whole filings: real routing and cost.
port=${PORT:-8377}
"$bin/python" "$shared/tools/replay_server.py" --port "$port" --recorded "$shared/recorded" > "$work/server.txt" &
server=$!
trap 'kill "$server" 2> /dev/null' EXIT
for _ in $(seq 100); do grep -q replaying "$work/server.txt" && break; sleep 0.1; done
# The open model is priced as at one of its hosts.
for pair in claude-3-5-haiku-20241022=anthropic:claude-3-5-haiku-20241022 gpt-4o-mini=openai:gpt-4o-mini \
  llama-3.1-8b=groq:llama-3.1-8b-instant; do
  model=${pair%%=*}
  evaluate "recorded-$model" filings -- --model "openai:$model" --base-url "http://127.0.0.1:$port/v1" \
    --priced-as "${pair#*=}"
done
