"""Classes of models that have the same name: which of them a trajectory means."""

import linecache
from dataclasses import dataclass

import numpy as np
import pytest

import nets
from physics import InputError, Trajectory

CELL = """
@dataclass(frozen=True)
class Net(TokenTransformer):
    def outputs(self, parameters, inputs, dropout=None):
        return {factor} * super().outputs(parameters, inputs)
"""
SMALL = {"tokens": 7, "dim": 4, "width": 4, "heads": 1}


def defined(factor, module="notebook", name="Net"):
    """Return a class as a cell of a notebook defines it."""
    cell = {"dataclass": dataclass, "TokenTransformer": nets.TokenTransformer, "__name__": module}
    text, file = (
        CELL.format(factor=factor).replace("class Net", f"class {name}"),
        f"<cell {len(linecache.cache)}>",
    )
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), cell)
    return cell[name]


def brief(kind):
    model = nets.ConstantAttention(7) if kind is nets.ConstantAttention else kind(**SMALL)
    observables = ("train_loss", "layers")
    return nets.train(model, steps=9, record=9, observables=observables, dtype="float64", device="cpu")


def loss_of(trained):
    return nets.networks(trained).loss("train")


def replace_parameters(trained, **parameters):
    return Trajectory(
        trained.positions,
        trained.steps,
        observables=trained.observables,
        parameters=trained.parameters | parameters,
    )


def test_networks_are_those_of_the_class_that_trained_and_not_of_one_of_its_name():
    first, second, other = defined(1), defined(3), defined(5, "elsewhere")
    for kind in (first, second, other, first):
        trained = brief(kind)
        np.testing.assert_allclose(loss_of(trained), trained.observables["train_loss"][:, -1])
        assert type(nets.networks(trained).model) is kind


def made_by(factor, power=1):
    """Return a class whose code is the same for each argument."""

    class Mixed:
        def outputs(self, parameters, inputs, dropout=None, power=power):
            return factor * super().outputs(parameters, inputs) ** power

    @dataclass(frozen=True)
    class Made(Mixed, nets.TokenTransformer):
        pass

    return Made


def test_classes_of_one_function_are_told_apart_by_its_arguments():
    kinds = [made_by(1), made_by(2), made_by(2, power=2)]
    for kind in kinds:
        assert type(nets.networks(brief(kind)).model) is kind


def test_a_cell_that_runs_again_defines_the_same_class():
    trained = brief(defined(1))
    again = defined(1)
    assert type(nets.networks(trained).model) is again


def test_of_classes_with_other_code_that_of_the_same_place_is_taken_with_a_warning():
    kinds = [defined(7, name="Twin"), defined(8, name="Twin"), defined(9, "elsewhere", "Twin")]
    trained = brief(kinds[0])
    for place, nearest in (("notebook.Twin", kinds[1]), ("elsewhere.Twin", kinds[2])):
        made = trained.parameters["model"] | {"class": {"name": place, "code": "of another Python"}}
        with pytest.warns(RuntimeWarning, match=f"^{place} has changed"):
            assert type(nets.networks(replace_parameters(trained, model=made)).model) is nearest


def test_a_class_that_has_changed_is_said_to_have():
    kind = defined(2, name="Edited")
    trained = brief(kind)
    made = trained.parameters["model"]["class"]
    code = made["code"][:-1] + ("0" if made["code"][-1] != "0" else "1")
    edited = trained.parameters["model"] | {"class": made | {"code": code}}
    with pytest.warns(RuntimeWarning, match="^notebook.Edited has changed since it was trained, so that its"):
        loss_of(replace_parameters(trained, model=edited))


def test_a_class_named_like_one_of_the_package_leaves_its_files_alone():
    own = defined(2, name="ConstantAttention")
    ours = brief(nets.ConstantAttention)
    assert "class" not in ours.parameters["model"]
    np.testing.assert_allclose(loss_of(ours), ours.observables["train_loss"][:, -1])
    assert type(nets.networks(brief(own)).model) is own
    absent = {"type": "TwoLayer", "class": {"name": "away.TwoLayer", "code": ""}, "tokens": 7}
    with pytest.raises(InputError, match=r"or be imported first, got away.TwoLayer$"):
        loss_of(replace_parameters(ours, model=absent))


def until(least):
    return lambda step, embeddings, observables: np.full(len(embeddings), step < least)


@pytest.mark.parametrize(
    ("factor", "least", "what"),
    [(3, 0, "model: .*; own_code: .*'Net': "), (1, -1, r"own_code: .*until.<locals>.<lambda>': ")],
)
def test_a_model_or_a_stop_rule_that_was_edited_does_not_resume(tmp_path, factor, least, what):
    def interrupt(step, *_):
        if step == 4:
            raise KeyboardInterrupt

    options = {"steps": 6, "record": 2, "observables": "layers", "out": tmp_path / "t.h5"}
    model = defined(1)(**SMALL)
    with pytest.raises(KeyboardInterrupt):
        nets.train(model, **options, stop=until(0), callback=interrupt)
    with pytest.raises(InputError, match=rf"another configuration \({what}.*\)$"):
        other = model if factor == 1 else defined(factor)(**SMALL)
        nets.train(other, **options, stop=until(least), resume=True)
    found = nets.train(model, **options, stop=until(0), resume=True)
    assert list(found.parameters["own_code"]) == ["until.<locals>.<lambda>", "Net"]
    assert nets.networks(found).model == model
