"""The tracks signals and survivors: what theories see of networks, and scores of known predictions."""

import numpy as np
import pytest

import nets
from grokphys.arena.signals import Circles, Signals, Survivors, alive, crossed, path, shown
from grokphys.arena.track import split
from physics import InputError, Trajectory

SETTING = Circles(23, 8, 8, 300, 20)


class Mean:
    """The mean path of the networks of the fit, from the step of the prediction on."""

    name = "mean"

    def fit(self, trajectory):
        self.networks = trajectory
        return self

    def predict(self, starts):
        return np.tile(path(self.networks, int(starts.steps[-2])).mean(axis=0), (starts.runs, 1, 1))


def test_theories_see_the_path_the_rate_and_the_first_layers():
    networks = SETTING.train(None)
    starts = shown(networks, 20)
    assert starts.steps.tolist() == [0, 4, 10, 20, 24]
    assert not {"seed", "run_numbers", "first_run"} & starts.parameters.keys()
    begun = nets.networks(starts, 0).parameters
    assert all(np.array_equal(begun[name.split(".", 1)[1]], value)
               for name, value in networks.start.items() if name.startswith("parameter."))  # fmt: skip


def test_no_network_is_predicted_by_a_theory_that_was_fitted_to_it():
    networks = SETTING.train(None)
    (found,) = crossed([Mean()], networks, 20, "predict")
    folds = np.arange(networks.runs) % 4
    for k, fold in enumerate(folds):
        np.testing.assert_allclose(found[k], path(networks, 20)[folds != fold].mean(axis=0))


def test_an_exact_prediction_has_the_best_score_and_one_that_diverges_the_worst():
    truth = split(SETTING.train(None))[1]
    some = alive(truth).any(axis=1)  # the index of two empty sets is 0
    assert some.any()
    end = Trajectory(truth.positions[:, -1:], [300])
    exact = {Signals: [path(truth, 20)], Survivors: [alive(truth), end, path(truth, 20)]}
    for track, predictions in exact.items():
        case = track().case(SETTING, None)
        for predicted in predictions:
            np.testing.assert_allclose(case.score(predicted)[some], track.best)
        np.testing.assert_allclose(case.score(np.full_like(path(truth, 20), np.inf)), 1 - track.best)
        with pytest.raises(InputError, match="must have the shape|must be truth values"):
            case.score(np.zeros((2, 5)))
