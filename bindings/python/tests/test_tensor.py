# SPDX-License-Identifier: MIT
"""Views of the library's arrays keep their owner alive."""

from __future__ import annotations

import gc

import pytest

import frit
from conftest import PROMPT

np = pytest.importorskip("numpy")


def test_views_outlive_their_owner(model: frit.Model) -> None:
    engine = frit.Engine(model, n_ctx=128)
    session = engine.session()
    session.push(PROMPT)
    expected = session.logits().tolist()
    view = np.asarray(session.logits(copy=False))
    lent = np.from_dlpack(session.logits(copy=False))
    raw = memoryview(session.logits(copy=False).buffer)
    del session
    gc.collect()
    other = engine.session()
    other.push("A fox and a cat")
    other.run()
    assert view.tolist() == expected and lent.tolist() == expected
    engine.close()
    del engine, other
    gc.collect()
    assert view.tolist() == expected and lent.tolist() == expected and raw.cast("B").cast("f").tolist() == expected
    del view, lent, raw
    gc.collect()


def test_views_share_memory_and_copies_do_not(engine: frit.Engine) -> None:
    session = engine.session()
    session.push(PROMPT)
    copy, view = session.logits(), session.logits(copy=False)
    assert np.shares_memory(np.asarray(view), np.asarray(session.logits(copy=False)))
    assert not np.shares_memory(np.asarray(view), np.asarray(copy))
    capsule = view.__dlpack__()   # dropped without a consumer
    del capsule


def test_rows(engine: frit.Engine, model: frit.Model) -> None:
    tokens = model.tokenize(PROMPT)
    rows = engine.session().all_logits(tokens)
    assert rows.shape == (len(tokens), model.info.n_vocab) == np.asarray(rows).shape
    session = engine.session()
    session.push(tokens)
    assert np.allclose(np.asarray(rows)[-1], session.logits().numpy(), atol=1e-3)
    assert np.asarray(rows[-1]).tolist() == np.asarray(rows)[-1].tolist()
    states = engine.session().hidden_states(tokens)
    assert states.shape == (len(tokens), model.info.n_embd) and np.abs(np.asarray(states)).max() > 0


def test_sampler_takes_tensors_and_arrays(engine: frit.Engine, model: frit.Model) -> None:
    session = engine.session()
    session.push(PROMPT)
    logits = session.logits()
    sampler = frit.Sampler(model, temperature=0)
    assert sampler.sample(logits) == sampler.sample(logits.numpy()) == int(np.argmax(logits.numpy()))
    with pytest.raises(ValueError, match="expected 8192"):
        sampler.sample(np.zeros(3, np.float32))
