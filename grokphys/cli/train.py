"""`grokphys train`: any model of the toolkit, as one ensemble, from the command line."""

from typing import Annotated, Any

from grokphys import options as opt
from grokphys.models import MODEL_OPTIONS, PER_MEMBER, built, stated
from grokphys.output import refuse_special
from nets.settings import Settings

TYPES: dict[str, Any] = dict.fromkeys(PER_MEMBER, float | tuple[float, ...] | None)
TYPES |= {"seed": int, "record": int | str, "observables": tuple[str, ...], "shared": tuple[str, ...]}
"""Types of settings on the command line, where Python takes more."""
WITHOUT = (
    *("run_numbers", "train_examples", "validation_examples", "initial", "betas", "epsilon", "chunk"),
    *("delta", "thresholds", "stop"),
)
"""Settings that the command has not, or under another name."""
LAYERS = "else that of the layers"
OTHERWISE = {
    "batch_size": "all training examples",
    "track": "at recorded steps and the last",
    "embedding_learning_rate": LAYERS,
    "embedding_weight_decay": LAYERS,
    "layer_scale": "1.0",
    "embedding_scale": "1.0",
}
"""Defaults in words of settings that neither Python nor a model states."""


def _options() -> opt.Options:
    """Return the options of the model and of the training, with the defaults of each model in words."""
    options = {name: (kind | None, None) for name, kind in MODEL_OPTIONS.items()}
    options |= opt.options_of(Settings, TYPES, WITHOUT)
    for name, (kind, default) in options.items():
        models: dict[str, list[str]] = {}
        for model, value in stated(name).items():
            models.setdefault(value, []).append(model)
        words = [f"{value} for {', '.join(names)}" for value, names in models.items()]
        words += [OTHERWISE[name]] if name in OTHERWISE else []
        if words:
            several = " ..." * ("tuple" in str(kind))
            options[name] = (
                Annotated[kind, opt.given_otherwise("; ".join(words), name.upper() + several)],
                default,
            )
    return {"model": (opt.ModelName, "constant-attention"), **options}


@opt.with_options(_options())
def train(
    *,
    threshold: Annotated[tuple[str, ...], opt.given_otherwise("none", "NAME=VALUE ...")] = (),
    stop_at_thresholds: opt.Switch = False,
    out: opt.StoredFile = None,
    overwrite: opt.Overwrite = False,
    resume: opt.Resume = False,
    **options: Any,
) -> int:
    """Train a model of the toolkit as an ensemble of networks, which differ in their seeds.

    Settings that are not given are those of the paper that the model comes from. The command prints the
    accuracies, and for constant-attention how many networks end as a circle. Give --out to keep the
    trajectory of the embeddings.

    Example: grokphys train --model constant-attention --runs 100 --weight-decay 1.0 --out networks.h5

    Args:
        model: Network to train, by the name of its class, such as ConstantAttention, or in lowercase with
            hyphens: constant-attention (Musat, Section 3), embedding-mlp (Ding, Section 2), toy-addition
            (Liu, Section 2), group-decoder (Liu, Appendix H), token-transformer (Liu, Section 4.2), image-mlp
            (Liu, Appendix J) or two-layer (He et al.).
        tokens: Number of tokens, at least 3. It is also the modulus if the task is addition with a modulus.
        dim: Number of dimensions, at least 1, of the embedding of each token.
        hidden: Numbers of units of the hidden layers, from the input to the output, each at least 1;
            constant-attention and two-layer have one hidden layer.
        kind: Kind of task that toy-addition learns: regression or classification.
        group: Group whose multiplication the group-decoder learns: Q8, or Zn, Sn, An or Dn with n of at least
            1, such as S3. It may have up to 2000 elements.
        scale: Size of the initial weights, greater than 0. Toy-addition and group-decoder draw embeddings
            uniformly from an interval of this width around 0; two-layer multiplies all its weights by it.
        initialisation: Distribution of the initial weights of the layers, for all models but two-layer:
            pytorch (the default of its layers), kaiming_uniform, kaiming_normal, xavier_uniform or
            xavier_normal.
        depth: Number of blocks of the transformer, at least 1.
        heads: Number of attention heads in each block, at least 1, which must divide --dim.
        width: Number of hidden units, at least 1, of the feed-forward layer in each block.
        causal: Whether the first token is kept from attending to the second, as in a language model.
        dropout: Rate of dropout in the blocks of the transformer: the probability, at least 0 and less than
            1, that a value is set to 0 during training.
        data: Images for image-mlp: digits, or the path of an npz archive with x_train and y_train.
        activation: Activation after the hidden layers of embedding-mlp: silu, relu, tanh or asinh; or of the
            neurons of two-layer: relu, quadratic, silu, tanh or abs.
        even: Weight, at least 0, with which (x/2) tanh(x/2), the even part of SiLU, is added to the
            activation tanh or asinh of embedding-mlp. It must be 0 for other activations.
        start: Initial weights of two-layer: random, or single_frequency, with which each neuron has one
            frequency. This needs an odd number of at least 5 tokens.
        runs: Number of runs, at least 1, each a network. Run k has its own random stream, derived from the
            seed and k.
        steps: Number of steps, at least 1. Each is one update of the optimizer, which is an epoch if the
            batch is full.
        seed: Seed of the ensemble, a whole number of at least 0.
        first_run: Number of the first run, at least 0. Use it to compute a large ensemble in several parts.
        learning_rate: Learning rate of the optimizer, at least 0: one value, or one for each of the runs,
            separated by spaces.
        weight_decay: Weight decay λ, at least 0 and without unit. As in AdamW it is decoupled from the
            gradient: a step at the learning rate η multiplies all parameters by 1 - ηλ. Give one value, or
            one for each of the runs.
        embedding_learning_rate: Learning rate of the embedding, at least 0, if it differs from that of the
            layers: one value, or one for each of the runs.
        embedding_weight_decay: Weight decay of the embedding, at least 0 and without unit, if it differs from
            that of the layers: one value, or one for each of the runs.
        freeze_embedding: Keep the initial embedding, and train only the layers.
        optimizer: Optimizer: adamw, or sgd, which is gradient descent without momentum.
        batch_size: Number of examples in each step, at least 1 and at most all training examples.
        train_fraction: Fraction of the examples to train on, greater than 0 and at most 1. The others are the
            validation set, so that one must be left, except for two-layer. If image data has a test set, this
            is the validation set, and the fraction refers to all other images.
        shared: Random draws that all networks share: embedding, layers, split, targets or noise.
        layer_scale: Factor, greater than 0, by which the initial weights of the layers are multiplied: one
            value, or one for each of the runs.
        embedding_scale: Factor, greater than 0, by which the initial embedding is multiplied: one value, or
            one for each of the runs.
        record: When to record: K (every K steps, K at least 1), 'log' (about 20 frames in each decade),
            'log:N' (about N in each), or '1:1000,100' (every step to 1000, then every hundredth). These
            record step 0 and the last step too. A list such as 0,10,100 records exactly its steps.
        observables: What to record in addition to the positions. Losses (cross-entropy in nats, or mean
            squared error) and accuracies (from 0 to 1) are recorded by default. Others are recorded if they
            are named. weight_norm and bias_norm are the mean absolute weight and bias of the first hidden
            layer; quality is the fraction of all parallelograms that the embedding has; gradient is that of
            the training loss with respect to the embedding; layers are all other parameters. neuron_frequency
            and neuron_purity describe each neuron of the first layer. restricted_loss and excluded_loss are
            the losses with the key frequencies alone and without them.
        threshold: Record the first step at which train_accuracy, validation_accuracy or quality reaches a
            value from 0 to 1, such as train_accuracy=0.9.
        track: Number of steps, at least 1, from one check of the thresholds to the next. Recorded steps are
            checked too.
        stop_at_thresholds: Stop training a network when it has reached all values of --threshold, which is
            then required.
        dtype: Number type of the stored positions, which are the embeddings here; the networks are trained in
            it too: float32, with about 7 significant digits, or float64, with about 16. Losses and other
            observables are stored as float64.
        stable_gradient: Compute the gradient of the cross-entropy at the right class as the sum of the other
            probabilities. Otherwise it is the probability of this class minus 1, as in PyTorch, which is only
            rounding in float32 once the loss is near 1e-7.
        engine: Engine that computes the steps: fused (compiled kernels, on a CPU, for models of dense layers)
            or torch (PyTorch, for all models). With auto it is fused where possible, and torch otherwise.
        device: Device to compute on: cpu, or cuda (an NVIDIA graphics card). With auto it is cuda if PyTorch
            finds such a card, and cpu otherwise.
        out: File to write. The trajectory is written to OUT.partial until it is complete.
        overwrite: Replace files that exist: OUT, and the unfinished run in OUT.partial.
        resume: Continue the unfinished run in OUT.partial. The options must be those with which it began.
    """
    from nets.training import train as train_model  # importing torch takes seconds

    refuse_special(out)
    model, settings = built(threshold=threshold, stop_at_thresholds=stop_at_thresholds, **options)
    trajectory = train_model(model, out=out, overwrite=overwrite, resume=resume, progress=True, **settings)
    return opt.summarise(trajectory, out)
