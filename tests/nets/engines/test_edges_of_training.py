"""Bounds of the arguments of `nets`: the last value that is taken, and the sentence on the next one."""

import json
import platform
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from edges import taken_and_refused

import nets
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batch_size_of, draw, per_member
from nets.engines.fused import FLUSH, flush
from nets.interventions import keep_frequencies, scale_frequency, with_signals
from nets.networks import Networks
from nets.observing import checked_thresholds
from nets.provenance import ensemble_of
from nets.recording import due, recording_steps
from nets.tasks import Task, modular_addition

RNG = np.random.default_rng(0)
SMALL = nets.ConstantAttention(5, hidden=4)
TWO = draw(SMALL, runs=2, seed=0)
NETS = Networks(TWO, "float64")
E = RNG.normal(size=(7, 2))
TASK = modular_addition(5)  # of 15 examples
WHOLE = Task(TASK.inputs, TASK.labels, 5, whole=True)
HELD = Task(TASK.inputs, TASK.labels, 5, held_out=np.array([0, 1, 2]))


def rates(**changed):
    given = dict.fromkeys(("learning_rate", "weight_decay"), 0.1)
    given |= dict.fromkeys(("embedding_learning_rate", "embedding_weight_decay"))
    return optimizer_of(2, **(given | {"betas": (0.9, 0.99), "epsilon": 1e-8} | changed))


def engine(**changed):
    given = {"name": "auto", "dtype": "float32", "device": "cpu", "chunk": None} | changed
    return choose_engine(given["name"], TWO, rates(), given["dtype"], given["device"], given["chunk"])


def task(labels, classes=2):
    return Task(np.zeros((len(labels), 2), np.int64), np.array(labels), classes)


POSITIVE = "must be a finite number greater than 0, got 0"
FRACTION = "must be a finite number greater than 0 and at most 1, got "
BETAS = "betas must be two numbers of at least 0 and less than 1, got "
LEAVE = "train_fraction must leave at least one training and one validation example of 15, got "
ONCE = "train_examples must name each example once, by numbers from 0 to 14, got "
DENSITY = f"record must ask for 1 to {10**6} frames in each decade, got "
BOUNDS = [
    # what is taken, what is not, and why
    *(
        (
            lambda x, name=name: rates(**{name: x}), 0, -0.1,
            f"{name} must be a finite number of at least 0, got -0.1",
        )
        for name in ("learning_rate", "weight_decay", "embedding_learning_rate", "embedding_weight_decay")
    ),
    (lambda x: rates(learning_rate=x), [0.1, 0], [0.1], "learning_rate must be a number, or one for "
     "each of 2 "
     "runs, got the shape (1,)"),
    (lambda x: rates(betas=x), (0, 0.9), (0.9, 1), BETAS + "(0.9, 1)"),
    (lambda x: rates(betas=x), (0.9, 0), (1, 0.9), BETAS + "(1, 0.9)"),
    (lambda x: rates(betas=x), (0.5, 0.5), (0.5,), BETAS + "(0.5,)"),
    (lambda x: rates(betas=x), [0.5, 0.5], 0.5, BETAS + "0.5"),
    (lambda x: rates(epsilon=x), 1e-300, 0, f"epsilon {POSITIVE}"),
    (lambda x: rates(kind=x), "sgd", "adam", "optimizer must be one of 'adamw', 'sgd', got 'adam'"),
    (lambda n: engine(name="torch", chunk=n), 1, 0, "chunk must be at least 1, got 0"),
    (lambda x: engine(dtype=x), "float64", "int8", "dtype must be one of 'float32', 'float64', got 'int8'"),
    (lambda x: engine(name=x), "fused", "both", "engine must be one of 'auto', 'fused', 'torch', got 'both'"),
    (lambda x: engine(name="fused", device=x), "cpu", "meta", "device must be 'auto', 'cpu' or "
     "a CUDA device such as 'cuda' or 'cuda:1', got 'meta'"),
    (lambda n: draw(SMALL, runs=n, seed=0), 1, 0, "runs must be at least 1, got 0"),
    (lambda x: draw(SMALL, runs=1, seed=0, layer_scale=x), 1e-9, 0, f"layer_scale {POSITIVE}"),
    (lambda x: draw(SMALL, runs=1, seed=0, embedding_scale=x), 1e-9, 0, f"embedding_scale {POSITIVE}"),
    (lambda x: draw(SMALL, runs=1, seed=0, shared=x), "noise", "seed",
     "shared must name random draws among embedding, layers, split, "
     "targets, noise, got 'seed'"),
    (lambda x: draw(SMALL, runs=1, seed=0, initial=x), {"embedding": np.zeros((5, 2))},
     {"embedding": np.zeros((5, 1))},
     "initial['embedding'] must have the shape (5, 2), or (1, 5, 2) for all runs, got (5, 1)"),
    (lambda n: per_member("x", [n, 2], 2, 1), 1, 0.9, "x must be a finite number of at least 1, got 0.9"),
    (lambda n: batch_size_of(n, 12), 12, 13, "batch_size must be at most the 12 training examples, got 13"),
    (lambda n: batch_size_of(n, 12), 1, 0, "batch_size must be at least 1, got 0"),
    (lambda x: checked_thresholds({"quality": x}, TWO), 0, -0.1,
     "thresholds of quality must be a finite number from 0 to 1, got "
     "-0.1"),
    (lambda x: checked_thresholds({"train_accuracy": x}, TWO), 1, 1.1,
     "thresholds of train_accuracy must be a finite number from 0 to 1, got 1.1"),
    (lambda n: recording_steps(1, n), 1, 0, "steps must be at least 1, got 0"),
    (lambda n: recording_steps(n, 9), 1, 0, "record must be at least 1, got 0"),
    (lambda x: recording_steps(x, 9), [9, 0], [10],
     "record must name at least one step and none beyond 9, got "
     "[10]"),
    (lambda x: recording_steps(x, 9), "0,9", "0,10",
     "record must name at least one step and none beyond 9, got "
     "[0, 10]"),
    (lambda x: recording_steps(x, 9), [0], [],
     "record must name at least one step and none beyond 9, got []"),
    (lambda x: recording_steps(x, 9), "log:1", "log:0", DENSITY + "'log:0'"),
    *((take, f"log:{10**6}", f"log:{10**6 + 1}", f"{DENSITY}'log:{10**6 + 1}'")
      for take in (due, lambda x: recording_steps(x, 9))),
    (lambda x: recording_steps(x, 9), "1:3,2:3,4", "1:3,2:2,4",
     "record must list its parts EVERY:UNTIL in the order of UNTIL, got '1:3,2:2,4'"),
    (lambda x: recording_steps(x, 9), "1:1,1", "0:1,1", "record must be at least 1, got 0"),
    (lambda x: recording_steps(x, 9), "1:1,1", "1:1,0", "record must be at least 1, got 0"),
    (due, 1, 0, "record must be at least 1, got 0"),
    (due, "7", "0", "record must be at least 1, got 0"),
    (TASK.training_size, 1 / 15, 0.06, LEAVE + "0.06"),
    (TASK.training_size, 14 / 15, 1, LEAVE + "1"),
    (TASK.training_size, 0.5, 0, f"train_fraction {FRACTION}0"),
    (WHOLE.training_size, 1, 1.1, f"train_fraction {FRACTION}1.1"),
    (WHOLE.training_size, 1 / 15, 0.06, LEAVE.replace("and one validation ", "") + "0.06"),
    (HELD.training_size, 1, 1.0000001, f"train_fraction {FRACTION}1.0000001"),
    (task, [0, 1], [0, 2], "labels must be whole numbers from 0 to 1, got 0 to 2"),
    (task, [], [-1, 0], "labels must be whole numbers from 0 to 1, got -1 to 0"),
    (TASK.given_split, [0], [], "train_examples must be a non-empty list of numbers of examples, got []"),
    (TASK.given_split, [14], [15], ONCE + "0 repeated and numbers from 15 to 15"),
    (TASK.given_split, [0], [-1], ONCE + "0 repeated and numbers from -1 to -1"),
    (TASK.given_split, [0, 1], [0, 0, 1], ONCE + "1 repeated and numbers from 0 to 1"),
    (TASK.given_split, list(range(14)), range(15),
     "train_examples must leave an example to validate on, got all "
     "15 that could be used for it"),
    (lambda x: TASK.given_split([0, 1], x), [2], [1, 2],
     "validation_examples must have no example in common with "
     "train_examples, got 1, the first of them example 1"),
    (lambda k: scale_frequency(E, k, 2), 3, 4, "frequency must be at most 3 for 7 tokens, got 4"),
    (lambda k: scale_frequency(E, k, 2), 1, 0, "frequency must be at least 1, got 0"),
    (lambda x: scale_frequency(E, 1, x), 0, -1, "factor must be a finite number of at least 0, got -1"),
    (lambda x: with_signals(E, [x, 1, 1]), 0, -1, "signals must be at least 0, got -1"),
    (lambda n: with_signals(E, np.ones(n)), 3, 2,
     "signals must hold one norm for each of the 3 frequencies of 7 "
     "tokens, got the shape (2,)"),
    (lambda x: with_signals(np.zeros((7, 2)), x), np.zeros(3), [0, 1, 1],
     "E must have a signal at frequency 2 that "
     "can be scaled, got 0"),
    (lambda k: keep_frequencies(E, k), [1, 3], [4], "frequencies must be at most 3 for 7 tokens, got 4"),
    (lambda k: keep_frequencies(E, k), [], 3, "frequencies must be a sequence of whole numbers, got 3"),
    (NETS.member, 1, 2, "run must be at most 1, got 2"),
    (lambda n: NETS.outputs(np.full((1, 2), n)), 4, 5, "inputs must be tokens from 0 to 4, got 5 to 5"),
    (lambda n: NETS.outputs(np.full((1, 2), n)), 0, -1, "inputs must be tokens from 0 to 4, got -1 to -1"),
    (lambda n: NETS.outputs(np.zeros((n, 3, 2), int)), 2, 3,
     "inputs must be given once, or for each of 2 runs, "
     "got them for 3"),
    (lambda x: NETS.outputs(np.zeros((3, x), int)), 2, 1,
     "inputs must be whole numbers of shape (examples, 2), or "
     "(runs, examples, 2), got int64 of shape (3, 1)"),
    (lambda n: NETS.classify(np.zeros((n, 3, 2))), 2, 3,
     "points must be given once, or for each of 2 runs, got them for 3"),
    (lambda n: NETS.classify(np.zeros((3, n))), 2, 3,
     "points must have the shape (points, 2), or (runs, points, "
     "2), got (3, 3)"),
    (lambda n: NETS.with_embedding(np.zeros((n, 5, 2))), 2, 3,
     "E must have the shape (5, 2), or (2, 5, 2) for all "
     "runs, got (3, 5, 2)"),
    (nets.ConstantAttention, 3, 2, "tokens must be at least 3, got 2"),
    (lambda n: nets.EmbeddingMLP(dim=n), 1, 0, "dim must be at least 1, got 0"),
    (lambda n: nets.EmbeddingMLP(hidden=n), (1,), (),
     "hidden must be a non-empty sequence of widths, got ()"),
    (lambda n: nets.EmbeddingMLP(hidden=(n,)), 1, 0, "hidden must be at least 1, got 0"),
    (lambda x: nets.EmbeddingMLP(activation="tanh", even=x), 0, -1,
     "even must be a finite number of at least 0, "
     "got -1"),
    (lambda n: nets.ToyAddition(outputs_dim=n), 1, 0, "outputs_dim must be at least 1, got 0"),
    (lambda x: nets.ToyAddition(scale=x), 1e-9, 0, f"scale {POSITIVE}"),
    (lambda n: nets.TokenTransformer(depth=n), 1, 0, "depth must be at least 1, got 0"),
    (lambda n: nets.TokenTransformer(heads=n), 256, 257, "heads must divide dim = 256, got 257"),
    (lambda n: nets.TokenTransformer(width=n), 1, 0, "width must be at least 1, got 0"),
    (lambda x: nets.TokenTransformer(dropout=x), 0, -0.1,
     "dropout must be a finite number of at least 0 and less than 1, got -0.1"),
    (lambda x: nets.TokenTransformer(dropout=x), 0.99, 1, "dropout must be a finite number of at least "
     "0 and less than 1, got 1"),
    (lambda x: nets.TokenTransformer(causal=x), False, 0, "causal must be True or False, got 0"),
    (lambda n: nets.ImageMLP(classes=n), 10, 2, "classes must be at least 3, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "sentence"), BOUNDS, ids=range(len(BOUNDS)))
def test_the_last_value_is_taken_and_the_next_one_refused(call, taken, refused, sentence):
    taken_and_refused(call, taken, refused, sentence)


@pytest.mark.parametrize(
    "options",
    [
        {"first_run": 3}, {"run_numbers": [5, 2]}, {"train_fraction": 0.5}, {"shared": ("split", "layers")},
        {"train_examples": [0, 4, 7]}, {"train_examples": [0, 4, 7], "validation_examples": [1, 9]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_was_not_kept_is_drawn_again_from_all_that_was_asked_for(options):
    trained = nets.train(SMALL, runs=2, seed=4, steps=1, keep_start=False, **options)
    again, wanted = ensemble_of(trained), draw(SMALL, runs=2, seed=4, **options)
    np.testing.assert_array_equal(again.train, wanted.train)
    np.testing.assert_array_equal(again.validation, wanted.validation)
    for name, value in wanted.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], value)


def test_no_inputs_have_no_outputs():
    assert NETS.outputs(np.zeros((0, 2), int)).shape == (2, 0, 5)
    assert NETS.classify(np.zeros((0, 2))).shape == (2, 0)


# -- subnormal numbers -------------------------------------------------------------------------------------

X86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="only x86 has this control register"
)
SUBNORMAL = np.array([1e-40], np.float32)


@X86
def test_a_thread_may_take_subnormal_numbers_for_0_and_others_do_not():
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()  # a thread begins with what its creator does
        assert flush(FLUSH) == 0
        try:
            assert SUBNORMAL * np.float32(1) == 0, "read as 0"
            assert np.float32(1e-30) * np.float32([1e-10]) == 0, "written as 0"
            assert np.float32(1e-30) * np.float32([1e-7]) > 0, "a normal number stays"
            assert other.submit(lambda: SUBNORMAL * np.float32(1) > 0).result()
            assert flush(FLUSH) == FLUSH
        finally:
            flush(0)
    assert SUBNORMAL * np.float32(1) > 0


@X86
@pytest.mark.parametrize(
    ("model", "scale"),
    [(nets.EmbeddingMLP(5, 2, hidden=(4,)), 1e-34), (nets.TwoLayer(5, hidden=4, scale=1e-34), 1.0)],
    ids=["dense", "two layers"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_decay_become_0_and_not_subnormal(model, scale, threads, all_threads):
    """Arithmetic with subnormal numbers takes twenty times as long."""
    numba.set_num_threads(min(threads, all_threads))
    rates = {"learning_rate": 0.01, "weight_decay": 90.0, "epsilon": 1.0}  # a tenth is left of a weight
    training = nets.Training(model, runs=3, seed=0, layer_scale=scale, engine="fused", **rates)
    training.advance(8)
    weights = np.concatenate([value.ravel() for value in training.networks().parameters.values()])
    least = np.finfo(np.float32).tiny
    assert ((weights == 0) | (np.abs(weights) >= least)).all()
    assert (weights == 0).any()
    assert SUBNORMAL * np.float32(1) > 0, "outside of the engine all is as it was"
    training.losses("train")
    assert SUBNORMAL * np.float32(1) > 0
