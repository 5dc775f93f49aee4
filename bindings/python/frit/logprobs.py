# SPDX-License-Identifier: MIT
"""Computes log-probabilities from logits."""

from __future__ import annotations

from ctypes import byref

from . import _declarations as c
from ._library import check, lib
from ._tensor import Tensor
from .results import TokenLogprob


def top_logprobs(logits: Tensor, token: int, n_top: int) -> TokenLogprob:
    """Returns the log-probability of a token by logits [n_vocab], and the n_top likeliest tokens."""
    own, top = c.frit_logprob(token=token), (c.frit_logprob * n_top)()
    n_vocab = logits.shape[0]
    check(lib.frit_logprobs_of(logits.buffer, n_vocab, byref(own), 1))
    check(lib.frit_logprobs_top(logits.buffer, n_vocab, top, n_top))
    return TokenLogprob(own.token, own.logprob, [(item.token, item.logprob) for item in top])
