"""The small parts of training, each recomputed from its definition: streams, batches, steps, times."""

import numpy as np

import nets
from nets.engines.ensemble import STREAMS, batches, draw, dropout_seed

SMALL = nets.ConstantAttention(5, hidden=4)


# -- random streams -----------------------------------------------------------------------------------------


def streams(seed, number):
    """Generators of a member: the children of its child of the seed, in the documented order."""
    child = np.random.SeedSequence(seed, spawn_key=(number,))
    return dict(zip(("embedding", "layers", "split", "targets", "noise"), child.spawn(5), strict=True))


def test_a_member_is_drawn_from_its_own_child_of_the_seed():
    model = nets.ToyAddition(5, hidden=(4,))
    found = draw(
        model, runs=3, seed=7, run_numbers=[4, 0, 4], shared=("layers",), layer_scale=[1.0, 2.0, 0.5],
        embedding_scale=3.0,
    )  # fmt: skip
    assert tuple(STREAMS) == tuple(streams(7, 0))
    for k, number in enumerate([4, 0, 4]):
        own, first = streams(7, number), streams(7, 0)
        rng = np.random.default_rng
        expected = model.initial(rng(own["embedding"]), rng(first["layers"]))
        for name, value in expected.items():
            scale = 3.0 if name == "embedding" else [1.0, 2.0, 0.5][k]
            np.testing.assert_allclose(found.parameters[name][k], scale * value, rtol=1e-15)
        train, validation = model.task.split(0.8, rng(own["split"]))
        np.testing.assert_array_equal(found.train[k], train)
        np.testing.assert_array_equal(found.validation[k], validation)
        np.testing.assert_array_equal(found.targets[k], model.targets(rng(own["targets"])))
        assert found.noise[k].generate_state(4).tolist() == own["noise"].generate_state(4).tolist()


def test_an_epoch_is_a_permutation_cut_into_whole_batches():
    ensemble = draw(SMALL, runs=2, seed=3)
    size = ensemble.train.shape[1]
    assert size == 12
    for batch in (5, 4, 1):
        in_epoch = size // batch
        expected = []
        for run in range(2):
            noise = streams(3, run)["noise"]
            order = [
                np.random.default_rng(
                    np.random.SeedSequence(noise.entropy, spawn_key=(*noise.spawn_key, 0, epoch))
                ).permutation(size)[: in_epoch * batch]
                for epoch in range(4)
            ]
            expected.append(np.concatenate(order).reshape(-1, batch))
        whole = batches(ensemble, batch, 0, 3 * in_epoch + 1)
        np.testing.assert_array_equal(whole, np.array(expected)[:, : 3 * in_epoch + 1])
        for first, count in (
            (0, 1),
            (1, in_epoch),
            (in_epoch - 1, 2),
            (in_epoch, in_epoch),
            (in_epoch + 1, 1),
        ):
            part = batches(ensemble, batch, first, count)
            np.testing.assert_array_equal(part, whole[:, first : first + count])
            assert part.flags.c_contiguous
    assert batches(ensemble, size, 0, 3) is None
    noise = ensemble.noise[0]
    child = np.random.SeedSequence(noise.entropy, spawn_key=(*noise.spawn_key, 1, 9))
    assert dropout_seed(noise, 9) == int(child.generate_state(1, np.uint64)[0])
