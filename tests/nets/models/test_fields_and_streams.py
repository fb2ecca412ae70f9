"""What every model does with its fields: bounds, types, what it learns, and the order of its draws."""

import json

import numpy as np
import pytest
from edges import taken_and_refused

import nets
from nets.architecture import draw_layer
from nets.engines.ensemble import draw
from nets.provenance import model_of
from physics import FileFormatError, InputError, cyclic, symmetric
from physics.trajectory.provenance import fields

MODELS = {
    "ConstantAttention": lambda **given: nets.ConstantAttention(**given),
    "EmbeddingMLP": lambda **given: nets.EmbeddingMLP(**given),
    "ToyAddition": lambda **given: nets.ToyAddition(**given),
    "GroupDecoder": lambda **given: nets.GroupDecoder(**given),
    "TokenTransformer": lambda **given: nets.TokenTransformer(**{"dim": 6, **given}),
    "TwoLayer": lambda **given: nets.TwoLayer(**given),
    "ImageMLP": lambda **given: nets.ImageMLP(**given),
}
LEAST = [
    *((name, "tokens", 3) for name in MODELS if name not in ("GroupDecoder", "ImageMLP")),
    *((name, "dim", 1) for name in ("ConstantAttention", "EmbeddingMLP", "ToyAddition", "TokenTransformer")),
    *((name, "hidden", 1) for name in ("ConstantAttention", "TwoLayer")),
    *((name, "outputs_dim", 1) for name in ("ToyAddition", "GroupDecoder")),
    *(("TokenTransformer", field, 1) for field in ("depth", "heads", "width")),
    ("GroupDecoder", "side", 1),
    ("ImageMLP", "classes", 3),
]


@pytest.mark.parametrize(("name", "field", "least"), LEAST)
def test_sizes_have_a_least_value_and_become_numbers_of_python(name, field, least):
    made = MODELS[name]
    taken = 10 if field == "classes" else least
    taken_and_refused(
        lambda value: made(**{field: value}), taken, least - 1,
        f"{field} must be at least {least}, got {least - 1}",
    )  # fmt: skip
    assert type(getattr(made(**{field: np.int64(taken)}), field)) is int


@pytest.mark.parametrize("name", ["EmbeddingMLP", "ToyAddition", "GroupDecoder", "ImageMLP"])
def test_widths_may_be_a_list_and_become_a_tuple_of_numbers_of_python(name):
    made = MODELS[name]
    model = made(hidden=[np.int64(4), 5])
    assert model.hidden == (4, 5)
    assert [type(width) for width in model.hidden] == [int, int]
    assert model == made(hidden=(4, 5))
    assert model != made(hidden=(5, 4))
    for wrong in ("", [], 4, np.array([4])):
        with pytest.raises(InputError, match="hidden must be a non-empty sequence of widths, got"):
            made(hidden=wrong)


FRACTIONS = [
    ("ToyAddition", "scale", 0.0), ("GroupDecoder", "scale", 0.0), ("TwoLayer", "scale", 0.0),
    ("GroupDecoder", "embedding_penalty", -1e-9), ("TokenTransformer", "dropout", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "refused"), FRACTIONS)
def test_numbers_become_floats_and_are_finite(name, field, refused):
    made, taken = MODELS[name], 0.25
    assert type(getattr(made(**{field: np.float32(taken)}), field)) is float
    for wrong in (refused, np.nan, np.inf, None):
        with pytest.raises(InputError, match=f"^{field} must be a finite number"):
            made(**{field: wrong})
    zero = 0 if field in ("embedding_penalty", "dropout") else 1e-12
    assert getattr(made(**{field: zero}), field) == zero


WORDS = {
    "initialisation": [name for name in MODELS if name != "TwoLayer"],
    "activation": ["EmbeddingMLP", "TwoLayer"], "kind": ["ToyAddition"], "start": ["TwoLayer"],
}  # fmt: skip


@pytest.mark.parametrize(("field", "name"), [(field, name) for field in WORDS for name in WORDS[field]])
def test_options_have_names(field, name):
    with pytest.raises(InputError, match=f"^{field} must be one of '.*', got 'other'$"):
        MODELS[name](**{field: "other"})


def test_an_even_part_belongs_to_odd_functions_and_nothing_else():
    for activation in ("tanh", "asinh"):
        assert nets.EmbeddingMLP(activation=activation, even=np.float32(0.5)).architecture.even == 0.5
    for activation in ("silu", "relu"):
        assert nets.EmbeddingMLP(activation=activation, even=0.0).even == 0.0
        sentence = (
            f"even must be 0 for the activation '{activation}', which already has an even part; tanh and "
            "asinh take one, got 0.5"
        )
        with pytest.raises(InputError) as said:
            nets.EmbeddingMLP(activation=activation, even=0.5)
        assert str(said.value) == sentence


SMALL = {
    "ConstantAttention": nets.ConstantAttention(7, 3, 4, "xavier_normal"),
    "EmbeddingMLP": nets.EmbeddingMLP(7, 3, (4, 5), "kaiming_uniform", "asinh", 0.5),
    "ToyAddition": nets.ToyAddition(7, 2, (4,), 3, "classification", 0.5, "kaiming_normal"),
    "GroupDecoder": nets.GroupDecoder(symmetric(3), 2, (4,), 3, 0.2, 0.01, "xavier_uniform"),
    "TokenTransformer": nets.TokenTransformer(7, 6, 3, 2, 5, 0.1, causal=False),
    "TwoLayer": nets.TwoLayer(7, 4, "abs", "single_frequency", 0.2),
    "ImageMLP": nets.ImageMLP(hidden=(4, 5)),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_model_comes_back_from_its_description_with_all_fields(name):
    model = SMALL[name]
    described = json.loads(json.dumps({"type": name, **fields(model)}))
    again = model_of(described)
    assert type(again) is type(model)
    assert fields(again) == fields(model)
    assert "type" in described, "the description is not used up"
    if name == "GroupDecoder":
        assert again.group.name == "S_3"
        np.testing.assert_array_equal(again.group.table, model.group.table)
    with pytest.raises(InputError, match="^model of the trajectory must be one of Const.*, got DenseModel$"):
        model_of(described | {"type": "DenseModel"})


@pytest.mark.parametrize("name", SMALL)
def test_a_model_states_its_shapes_and_what_it_learns(name):
    model = SMALL[name]
    tokens, dim = {"GroupDecoder": (6, 4), "TwoLayer": (7, 4), "ImageMLP": (10, 5)}.get(
        name, (7, getattr(model, "dim", None))
    )
    assert (model.tokens, model.dim) == (tokens, dim)
    drawn = draw(model, runs=1, seed=0)
    assert tuple(drawn.parameters)[: len(model.encoder)] == tuple(model.encoder)
    if name == "ImageMLP":
        assert model.theory is None
        assert model.encoder == ("hidden1.weight", "hidden1.bias", "hidden2.weight", "hidden2.bias")
    else:
        assert model.encoder == ("embedding",)
        assert drawn.parameters["embedding"].shape == (1, tokens, dim)
        assert model.theory.tokens == tokens
        assert model.theory.modulus == (None if name in ("ToyAddition", "GroupDecoder") else 7)
        assert (model.theory.group is None) is (name != "GroupDecoder")
    ordered = name not in ("ConstantAttention", "ToyAddition", "ImageMLP")
    pairs = tokens**2 if ordered else tokens * (tokens + 1) // 2
    assert len(model.task) == (1797 if name == "ImageMLP" else pairs)
    assert model.task.whole is (name == "TwoLayer")
    squared = name in ("GroupDecoder", "ImageMLP")
    assert model.loss == ("mean_squared_error" if squared else "cross_entropy")
    assert (drawn.targets is None) is not squared
    assert model.dropout == (0.1 if name == "TokenTransformer" else 0)
    assert model.embedding_penalty == (0.01 if name == "GroupDecoder" else 0)
    assert getattr(model.architecture, "embedding_penalty", 0) == model.embedding_penalty
    if name == "ImageMLP":
        np.testing.assert_array_equal(drawn.targets[0], np.eye(10))


def test_a_transformer_draws_block_by_block_and_the_output_last():
    model = nets.TokenTransformer(7, 6, 2, 2, 5, initialisation="kaiming_normal")
    plain = nets.TokenTransformer(7, 6, 2, 2, 5)
    for one in (model, plain):
        rule, own = one.initialisation, np.random.default_rng(2)
        expected = {"embedding": np.random.default_rng(1).standard_normal((7, 6))}
        for block in ("block1", "block2"):
            for part in ("attention", "feed_forward"):
                expected[f"{block}.{part}.norm.weight"] = np.ones((1, 6))
                expected[f"{block}.{part}.norm.bias"] = np.zeros((1, 6))
            joint = "xavier_uniform" if rule == "pytorch" else rule
            expected |= draw_layer(f"{block}.attention.in", joint, 6, 18, own)
            expected |= draw_layer(f"{block}.attention.out", rule, 6, 6, own)
            expected[f"{block}.attention.out.bias"] = np.zeros((1, 6))
            expected |= draw_layer(f"{block}.feed_forward.in", rule, 6, 5, own)
            expected |= draw_layer(f"{block}.feed_forward.out", rule, 5, 6, own)
        expected |= draw_layer("output", rule, 12, 7, own)
        found = one.initial(np.random.default_rng(1), np.random.default_rng(2))
        assert list(found) == list(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert plain.initial(*map(np.random.default_rng, (1, 2)))["block2.feed_forward.in.bias"].any()


def test_an_embedding_is_scaled_only_where_there_is_one():
    model = SMALL["ImageMLP"]
    assert draw(model, runs=2, seed=0, embedding_scale=[1.0, 1]).runs == 2
    sentence = (
        "embedding_scale must be 1 for ImageMLP, which has no embedding, got [1.0, 2.0]; layer_scale scales "
        "its layers"
    )
    taken_and_refused(lambda x: draw(model, runs=2, seed=0, embedding_scale=x), 1, [1.0, 2.0], sentence)
    one, other = (draw(model, runs=2, seed=0, layer_scale=x).parameters for x in (1.0, [1.0, 3.0]))
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value * np.array([1.0, 3.0])[:, None, None])


# -- images -------------------------------------------------------------------------------------------------


def archive(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


def images(path, **changed):
    given = {"x_train": np.arange(24, dtype=np.uint8).reshape(6, 2, 2), "y_train": np.arange(6) % 3}
    return nets.models.images.load_images(archive(path, **(given | changed)), 3)


def test_the_set_for_training_and_the_test_set_may_have_pixels_of_different_types(tmp_path):
    test = np.array([[[0.5, 2.0], [-1.0, 255.0]]], np.float16)
    found = images(tmp_path / "a.npz", x_test=test, y_test=np.array([2], np.uint8))
    assert (found.pixels.dtype, found.labels.dtype, found.trainable) == (np.float32, np.int64, 6)
    np.testing.assert_array_equal(
        found.pixels[:6], np.arange(24, dtype=np.float32).reshape(6, 4) / np.float32(255)
    )
    np.testing.assert_array_equal(found.pixels[6], [0.5, 2.0, -1.0, 255.0])
    np.testing.assert_array_equal(found.labels, [0, 1, 2, 0, 1, 2, 2])
    flat = images(tmp_path / "b.npz", x_train=np.arange(24, dtype=np.uint8).reshape(6, 4))
    assert flat.digest == images(tmp_path / "c.npz").digest != found.digest


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"x_train": np.full((6, 2), np.inf)}, "x_train of .* or finite floating-point numbers; found flo"),
        ({"x_train": np.ones((6, 2), complex)}, "x_train of .* found complex128 of shape"),
        ({"x_train": np.ones((6, 2), bool)}, "x_train of .* found bool of shape"),
        ({"y_train": np.ones(6, bool)}, "y_train of .* must be whole numbers .*, found bool of the"),
        (
            {"y_train": np.array([0, 1, 2, 3, 0, 0])},
            r"from 0 to classes - 1 = 2, got 0 to 3 in .*a\.npz: train$",
        ),
        ({"x_test": np.ones((1, 2, 2)), "y_test": np.array([-1])}, r"got -1 to -1 in .*a\.npz: test$"),
        (
            {"x_test": np.ones((1, 2, 2)), "y_test": np.array([], int)},
            "test must hold images and one label for",
        ),
        ({"x_test": np.ones((1, 2, 2))}, "or not at all; it holds x_train, y_train, x_test$"),
    ],
)
def test_images_that_are_none_end_in_a_sentence(changed, sentence, tmp_path):
    with pytest.raises(FileFormatError, match=sentence):
        images(tmp_path / "a.npz", **changed)


def test_files_that_hold_no_images_end_in_a_sentence(tmp_path, monkeypatch):
    load = nets.models.images.load_images
    with pytest.raises(FileFormatError, match="or not at all; it holds nothing$"):
        load(archive(tmp_path / "none.npz"), 3)
    with pytest.raises(
        FileFormatError, match="^/dev/null is neither a file nor a directory, so it holds no im"
    ):
        load("/dev/null", 3)
    for axes in (1, 3):
        (tmp_path / "one").write_bytes(bytes([0, 0, 8, axes, 0, 0, 0, 0]))
        with pytest.raises(
            FileFormatError, match="one is one IDX file; give the directory that holds images and"
        ):
            load(str(tmp_path / "one"), 3)
    folder = tmp_path / "idx"
    folder.mkdir()
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (folder / name).write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"\(unsigned bytes, number of axes 3\), found nothing$"):
        load(str(folder), 3)
    (folder / "train-labels-idx1-ubyte").unlink()
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(
        FileFormatError, match="must hold train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz,"
    ):
        load(str(folder), 3)

    def fails(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(nets.models.images.Path, "read_bytes", fails)
    with pytest.raises(FileFormatError, match=r"^.*one cannot be read \(Input/output error\)$"):
        load(str(tmp_path / "one"), 3)
    monkeypatch.setattr(nets.models.images, "find_spec", lambda name: None)
    with pytest.raises(
        FileFormatError, match="needs the file digits.csv.gz of scikit-learn, which is not installed"
    ):
        load("digits", 10)


def test_a_group_may_be_its_table_and_learns_its_own_products():
    model = nets.GroupDecoder(cyclic(5).table.tolist(), side=2, hidden=(3,))
    assert (model.tokens, model.dim, model.group.order) == (5, 4, 5)
    a, b = model.task.inputs.T
    np.testing.assert_array_equal(model.task.labels, (a + b) % 5)
    assert model.targets(np.random.default_rng(0)).shape == (5, 30)
