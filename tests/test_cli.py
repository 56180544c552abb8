"""The command line beside pytest: lists."""

import functools

import numpy as np
import pytest

import attrcheck
from attrcheck.cli import main
from attrcheck.cli.listing import FAMILIES, passes
from attrcheck.contracts import Method, Tuning
from attrcheck.engine.settings import affords
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store


def listed(capsys, *arguments):
    """The lines that `attrcheck list` prints."""
    assert main(["list", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def cells(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.replace("\\|", "\0").split("|")[1:-1]]


@pytest.mark.parametrize(
    ("counts", "text"),
    [((50, 50), "50 fwd + 50 bwd"), ((129, 0), "129 fwd"), ((0, 0), "none"), ((0, 1), "1 bwd")],
)
def test_a_cost_in_passes(counts, text):
    assert passes(Method("m", len, passes=counts)) == text


def test_methods_are_listed_with_family_cost_and_reference(capsys):
    head, rule, *lines = listed(capsys, "methods")
    assert " ".join(head.split()) == "method family passes runs applies to reference what it is"
    assert set(rule) == {"-", " "}
    rows = {line.split()[0]: line for line in lines}
    assert set(rows) == set(attrcheck.method)
    facts = [part for part in rows["scorecam"].split("  ") if part]
    assert [fact.strip() for fact in facts[:6]] == [
        "scorecam",
        "cam",
        "129 fwd",
        "if asked",
        "all",
        "Wang et al. 2020",
    ]
    assert facts[6].strip().startswith("relu(sum of w_k A_k), w = softmax over k")
    assert "  dummy  " in rows["random"]
    assert "  none  " in rows["random"]


def test_methods_are_grouped_by_family_with_the_dummies_last(capsys):
    _, _, *lines = listed(capsys, "methods", "--markdown")
    families = [cells(line)[1] for line in lines]
    assert families == sorted(families, key=FAMILIES.index)
    assert families[-1] == "dummy"
    names = [cells(line)[0] for line in lines if cells(line)[1] == "cam"]
    assert names == sorted(names)


def test_every_built_in_method_says_what_it_is_and_costs(capsys):
    _, _, *lines = listed(capsys, "methods", "--markdown")
    for line in lines:
        name, family, _, runs, applies, reference, what = cells(line)
        spec = attrcheck.method.get(name)
        assert runs == ("" if affords(spec) else "if asked"), name
        assert family in FAMILIES
        assert family != "own"
        assert what.endswith((".", ":")) or len(what) > 40, name
        assert reference or family == "dummy", name
        assert applies, name
        assert (spec.passes == (0, 0)) == spec.dummy == (family == "dummy"), name


def test_markdown_is_a_table_whose_cells_hold_their_bars(capsys):
    head, rule, *lines = listed(capsys, "methods", "--markdown")
    facts = ["family", "passes", "runs", "applies to", "reference"]
    assert cells(head) == ["method", *facts, "what it is"]
    assert set(rule) == {"|", "-"}
    assert len(lines) == len(list(attrcheck.method))
    assert all(len(cells(line)) == 7 for line in lines)
    (sobel,) = [line for line in lines if "edge_sobel" in line]
    assert r"\|Gx\| + \|Gy\|" in sobel


def test_ones_own_method_is_listed_by_its_function_even_if_bound(capsys, registries):
    def general(model, images, targets, steps):
        """What the general one does.

        And more.
        """

    attrcheck.method("mine", passes=(3, 0))(functools.partial(general, steps=3))
    attrcheck.method("adapted")(attrcheck.captum_method("Lime"))
    _, _, *lines = listed(capsys, "methods")
    rows = {line.split()[0]: line for line in lines}
    assert "own" in rows["mine"]
    assert "3 fwd" in rows["mine"]
    assert rows["mine"].endswith("What the general one does.")
    assert "What a class of Captum attributes" in rows["adapted"]


@pytest.mark.parametrize("style", [(), ("--markdown",)])
def test_text_of_others_is_escaped_in_a_list(capsys, registries, style):
    def rude(model, images, targets):
        """Rude."""

    rude.__doc__ = "\x1b[31mred\x07 | <script> [link](http://evil.example) " + "why " * 5000
    attrcheck.method("mine", reference="\x1b]0;title\x07 | 2020")(rude)
    lines = listed(capsys, "methods", *style)
    [mine] = [line for line in lines if "mine" in line]
    assert all(line.isprintable() for line in lines)
    assert r"\x1b" in mine
    assert len(mine) < 2500
    if style:
        assert len(cells(mine)) == 7
        assert "<script>" not in mine
        assert r"[link\](" in mine


@pytest.mark.parametrize("kind", ["datasets", "models", "protocols", "checks", "removals"])
def test_other_kinds_are_listed_by_name_and_docstring(capsys, kind):
    head, _, *lines = listed(capsys, kind)
    registry = getattr(attrcheck, kind.removesuffix("s"))
    assert head.split()[0] == kind.removesuffix("s")
    assert [line.split()[0] for line in lines] == list(registry)
    assert all(len(line.split()) > 2 for line in lines)


def test_an_unknown_kind_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["list", "cats"])
    assert "invalid choice: 'cats'" in capsys.readouterr().err


def test_an_unknown_name_is_one_clear_line(capsys):
    assert main(["train", "--datasets", "digit"]) == 1
    assert capsys.readouterr().err == (
        "attrcheck: no dataset is called 'digit'; did you mean digits?\n"
    )


def test_finetune_goes_through_the_embedded_models_selected(monkeypatch, tmp_path, capsys):
    calls = []

    def noted(data, model, build, tuning, *, folder, seed, report, progress):
        assert build == attrcheck.model.get(model).network
        progress(f"{model} at work")
        report(f"{model} is done")
        calls.append((data.name, model, tuning, folder, seed))

    monkeypatch.setattr("attrcheck.training.finetuning.finetune_embedded", noted)
    chosen = ["--datasets", "d*", "--models", "v*", "--grid", "2", "--removal", "blur"]
    assert main(["finetune", *chosen, "--seed", "3", "--folder", str(tmp_path)]) == 0
    tuning = Tuning(2, "blur")
    assert calls == [("digits", name, tuning, tmp_path, 3) for name in ("vgg", "vit")]
    assert capsys.readouterr().out == "vgg is done\nvit is done\n"


def test_train_shuffled_trains_embedded_models_on_shuffled_labels_only(monkeypatch, tmp_path):
    calls = []

    def noted(data, model, build, *, folder, seed, report):
        assert build == attrcheck.model.get(model).network
        calls.append((data.name, model, folder, seed))

    monkeypatch.setattr("attrcheck.training.shuffling.train_shuffled", noted)
    monkeypatch.setattr(
        "attrcheck.training.loop.train", lambda *pair, **where: pytest.fail("plain")
    )
    chosen = ["--shuffled", "--datasets", "digits", "--models", "v*", "--folder", str(tmp_path)]
    assert main(["train", *chosen, "--seed", "3"]) == 0
    assert calls == [("digits", name, tmp_path, 3) for name in ("vgg", "vit")]


def test_finetune_as_shipped_is_the_default(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "attrcheck.training.finetuning.finetune_embedded",
        lambda data, model, build, tuning, **settings: calls.append((data.name, model, tuning)),
    )
    assert main(["finetune"]) == 0
    assert len(calls) == 24  # three datasets x eight models
    assert {tuning for _, _, tuning in calls} == {Tuning()}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--models", "vg"], "no model is called 'vg'; did you mean vgg?"),
        (["--removal", "maen"], "no removal is called 'maen'; did you mean mean?"),
        (
            ["--grid", "5"],
            "dataset 'digits': a grid of 5x5 does not cut images of 32x32 into equal cells",
        ),
    ],
)
def test_finetune_complains_in_one_clear_line(capsys, tmp_path, arguments, complaint):
    chosen = ["--datasets", "digits", "--models", "resnet", *arguments, "--folder", str(tmp_path)]
    assert main(["finetune", *chosen]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"attrcheck: {complaint}")
    assert not list(tmp_path.iterdir())


def test_nothing_in_a_store_reaches_the_terminal_as_a_control_character(capsys, tmp_path):
    name = "maps/a-x/\x1b[2J\u202e"
    Store(tmp_path).obtain(name, {"part": "one"}, lambda: Entry({"maps": np.zeros(1)}))
    assert main(["why", "*", str(tmp_path)]) == 0
    assert main(["store", str(tmp_path / "no\x1b[2Jwhere")]) == 1
    output, errors = capsys.readouterr()
    assert r"maps/a-x/\x1b[2J\u202e" in output
    assert r"there is no store at" in errors
    assert (output + errors).replace("\n", "").isprintable()
