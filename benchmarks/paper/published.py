"""Figures of Li et al. (2024, arXiv 2407.16833), times 100, and of Li et al. (2025, arXiv 2501.01880)."""

from __future__ import annotations

from collections.abc import Mapping

LONGBENCH = ("narrativeqa", "qasper", "multifieldqa", "hotpotqa", "2wikimultihopqa", "musique", "qmsum")
DATASETS = (*LONGBENCH, "en.qa", "en.mc")
ROWS = ("long context", "RAG", "Self-Route", "answerable %", "token %")

Rows = Mapping[str, Mapping[str, float]]


def _rows(*figures: tuple[float, ...]) -> Rows:
    """Name figures in the order of the paper's rows and columns; the average comes first."""
    return {row: dict(zip(("Avg", *DATASETS), line, strict=True)) for row, line in zip(ROWS, figures, strict=True)}


# Tables 1 and 2: by model; with Contriever, except for the last. Avg as printed: GPT-3.5-Turbo's Self-Route has 35.32
# where its row averages 36.40, all others agree.
MODELS: dict[str, Rows] = {
    "Gemini-1.5-Pro": _rows(
        (49.70, 32.76, 47.83, 52.33, 61.85, 62.96, 40.22, 20.73, 43.08, 85.57),
        (37.33, 22.54, 44.68, 49.53, 48.36, 54.24, 26.56, 19.51, 19.46, 51.09),
        (46.41, 28.32, 45.23, 51.47, 55.18, 62.68, 40.66, 19.77, 37.51, 76.86),
        (76.78, 73.00, 85.00, 96.67, 84.50, 81.00, 58.50, 93.50, 56.41, 62.45),
        (38.39, 23.07, 49.93, 36.88, 32.97, 53.49, 56.14, 17.96, 42.25, 32.84),
    ),
    "GPT-4O": _rows(
        (48.67, 32.78, 44.54, 55.28, 62.42, 70.69, 41.65, 21.92, 32.36, 76.42),
        (32.60, 18.05, 46.02, 50.74, 36.86, 50.21, 16.09, 19.97, 14.43, 41.05),
        (48.89, 31.36, 47.99, 53.17, 62.14, 70.14, 41.69, 21.31, 34.95, 77.29),
        (57.36, 44.00, 67.50, 94.00, 52.50, 62.00, 30.00, 92.00, 27.07, 47.16),
        (61.40, 66.40, 72.25, 39.65, 65.79, 77.05, 85.00, 20.26, 73.01, 53.21),
    ),
    "GPT-3.5-Turbo": _rows(
        (32.07, 23.34, 42.96, 49.19, 45.33, 41.04, 17.92, 19.61, 14.73, 34.50),
        (30.33, 18.22, 38.15, 49.21, 37.84, 35.16, 16.41, 18.94, 15.39, 43.67),
        (35.32, 24.06, 38.65, 52.07, 47.28, 44.62, 34.44, 19.88, 22.03, 44.54),
        (74.10, 71.50, 80.00, 91.33, 68.50, 69.00, 47.00, 93.50, 50.43, 95.63),
        (38.85, 20.56, 55.08, 35.29, 48.70, 65.91, 65.08, 16.40, 38.17, 4.50),
    ),
    "Gemini-1.5-Pro with Dragon": _rows(
        (49.70, 32.76, 47.83, 52.33, 61.85, 62.96, 40.22, 20.73, 43.08, 85.57),
        (38.09, 21.91, 44.33, 53.08, 51.61, 50.05, 30.47, 19.93, 21.25, 50.22),
        (46.81, 28.50, 43.82, 54.62, 56.58, 60.62, 40.66, 20.07, 37.79, 78.60),
        (77.88, 74.00, 84.00, 97.33, 86.00, 77.00, 66.00, 95.50, 61.25, 59.83),
        (37.87, 19.31, 54.15, 34.78, 32.64, 55.65, 48.16, 16.64, 38.71, 40.83),
    ),
    # Table 3.
    "Gemini-1.5-Pro on PassKey": {
        "long context": {"passkey": 65.25, "passkey-special-token": 69.32, "passkey-larger": 64.24},
        "RAG": {"passkey": 80.34, "passkey-special-token": 4.58, "passkey-larger": 47.63},
    },
}

# Table 4, Gemini-1.5-Pro with the long context: without and with "based only on the provided passage".
BASED_ONLY_ON = {
    "narrativeqa": (36.35, 32.76),
    "qasper": (50.69, 47.83),
    "multifieldqa": (56.07, 52.33),
    "hotpotqa": (66.47, 61.85),
    "2wikimultihopqa": (68.97, 62.96),
    "musique": (54.56, 40.22),
    "qmsum": (20.87, 20.73),
    "en.qa": (49.20, 43.08),
    "en.mc": (90.83, 85.57),
}

# Table 5, MuSiQue: all questions and those not answered from memory, of Gemini-1.5-Pro and then of GPT-3.5-Turbo.
CLOSED_BOOK = {
    "questions": (200, 133, 200, 150),
    "long context": (40.22, 31.76, 17.92, 13.00),
    "RAG": (26.56, 15.51, 16.41, 13.05),
    "Self-Route": (40.66, 31.32, 34.44, 19.76),
    "answerable %": (58.50, 52.63, 47.00, 45.33),
    "token %": (56.14, 48.46, 65.08, 53.43),
}

# Table 7 and Figure 3, Gemini-1.5-Pro over the sets of LongBench: the scores of RAG and Self-Route by k, then the
# tokens of both, in per cent of the long context's.
K = {
    1: (20.24, 41.35, 5.26, 39.64),
    5: (37.92, 43.33, 17.02, 38.63),
    10: (41.20, 44.38, 42.42, 53.66),
    50: (44.06, 45.19, 95.29, 102.97),
    100: (44.12, 45.23, 100.32, 106.59),
}

# Section 4.1 and Figure 2: the share of questions with identical predictions, and with scores less than 10 apart.
IDENTICAL, CLOSE = 63.0, 70.0

# The sequel's Table 2: how many questions a data set has, and the share, in per cent, not answered from memory.
OF_SEQUEL = {
    "2wikimultihopqa": (300, 51),
    "hotpotqa": (200, 47),
    "musique": (200, 70),
    "multifieldqa": (150, 81),
    "narrativeqa": (200, 86),
    "qasper": (224, 99),
}
