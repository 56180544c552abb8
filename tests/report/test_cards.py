"""Cards: all that is known of one method."""

from dataclasses import replace

import numpy as np
import pytest

from attrcheck.cli import main
from attrcheck.engine.facts import facts
from attrcheck.engine.results import LawResult, MethodFacts
from attrcheck.engine.wire import loads
from attrcheck.report import carding, files
from attrcheck.report.cards import Card, cards
from attrcheck.report.details import Details
from attrcheck.report.document import build
from tests.report import samples
from tests.report.samples import check
from tests.report.test_comparing import result

ATTRIBUTES = {
    "Methodology": [
        "determinism",
        "hyperparameter dependence",
        "model agnosticism",
        "computational efficiency",
        "semantic directness",
    ],
    "Sensitivity testing": ["input sensitivity", "label sensitivity", "model sensitivity"],
    "Perceptibility testing": ["minimality", "perceptual correspondence"],
}
"""Of Boggust et al. 2023."""
FACTS = MethodFacts(
    family="propagation",
    passes=[2, 1],
    reference="Bach et al. 2015",
    definition="Relevance, sent back.",
    axioms={"conservation": 0.01},
)


def document(**changes):
    """Two models; `mine` does not apply to the second."""
    results = [
        result("a-x-morf", {"mine": np.full(20, 0.9), "other": np.full(20, 0.1)}),
        result("a-x-relevance", {"mine": np.full(20, 0.1), "other": np.full(20, 0.9)}),
        result("a-y-morf", {"mine": None, "other": np.full(20, 0.9)}),
    ]
    checks = [
        check("axioms", "methods", "mine", conservation=0.002),
        check("contract", "methods", "mine", when_repeated=0.0),
        check(
            "randomisation", "methods", "mine", "failed", "it stays the same", rank_correlation=1
        ),
        check("target_sensitivity", "methods", "mine", "known_failure", "it sees no class"),
    ]
    settings = samples.settings(
        ["mine", "other"],
        facts={"mine": FACTS},
        families={"morf": "ablation", "relevance": "ground_truth"},
    )
    run = replace(samples.RUN, seconds_per_image={"mine": 0.25})
    laws = [
        LawResult("method", "mine", "symmetry", "held", examples=25),
        LawResult("method", "mine", "scaling", "broken", "off by 2", examples=25),
        LawResult("method", "mine", "linearity", "not_applicable"),
        LawResult("protocol", "mine", "seeded", "broken", "not a method"),
    ]
    return replace(build(results, checks, settings, [], run, laws), **changes)


def lines(found, title):
    [section] = [section for section in found.sections if section.title == title]
    return {fact.name: fact.text for fact in section.facts}


@pytest.fixture(scope="module")
def mine():
    return carding.of("mine", "here", document())


def test_it_has_the_ten_attributes_of_the_saliency_cards(mine):
    found = {title: list(lines(mine, title)) for title in ATTRIBUTES}
    assert found == ATTRIBUTES


def test_what_has_no_answer_says_so(mine):
    for title, name in (
        ("Methodology", "hyperparameter dependence"),
        ("Methodology", "semantic directness"),
        ("Perceptibility testing", "minimality"),
    ):
        assert lines(mine, title)[name].startswith("no answer: ")
    other = carding.of("other", "here", document())
    assert lines(other, "Sensitivity testing")["model sensitivity"].startswith("no answer: ")
    assert lines(other, "Method") == {"definition": "no answer: it could not be loaded"}


def test_definition_reference_cost_and_place(mine):
    assert lines(mine, "Method") == {
        "definition": "Relevance, sent back.",
        "reference": "Bach et al. 2015",
        "family": "propagation",
    }
    methodology = lines(mine, "Methodology")
    assert methodology["computational efficiency"].startswith("2 forward and 1 backward passes")
    assert methodology["determinism"] == "deterministic; contract passed on 1 of 1 pair"
    place = lines(mine, "Place")
    assert place["board"].startswith("1 of 2, Meta-Rank +0.00")
    assert place["wins"] == "50% of its comparisons"


def test_axioms_claimed_and_proved(mine):
    claimed = "claimed within 0.01; kept on 1 of 1 pair, median error 0.002, at worst 0.002"
    assert lines(mine, "Axioms") == {
        "conservation": claimed,
        "on random networks": "kept: symmetry",
        "broken: scaling": "off by 2",
    }


def test_checks_passed_and_failed_with_reasons(mine):
    assert lines(mine, "Checks") == {
        "passed": "2 of 4 checks that decided",
        "failed: randomisation": "on a-x: it stays the same",
        "known to fail: target_sensitivity": "on a-x: it sees no class",
    }
    sensitivity = lines(mine, "Sensitivity testing")
    assert sensitivity["model sensitivity"] == (
        "randomisation passed on 0 of 1 pair (rank correlation 1.00), not on a-x"
    )
    assert sensitivity["input sensitivity"] == "1 of 2 in ablation"


def test_where_it_applies_and_why_not_elsewhere(mine):
    assert lines(mine, "Where it applies") == {"applies to": "x", "not to y": "no gradient"}
    assert lines(mine, "Methodology")["model agnosticism"].startswith("applies to 1 of 2 models")


def test_ranks_by_dataset_model_and_family(mine):
    assert lines(mine, "Ranks") == {
        "dataset a": "mean rank 1.5 in 2 cases, first in 1",
        "model x": "mean rank 1.5 in 2 cases, first in 1",
        "family ablation": "1 of 2, Meta-Rank +0.55",  # ln(1.5 / 0.5) / 2
        "family ground_truth": "2 of 2, Meta-Rank -0.55",
    }
    assert lines(mine, "Perceptibility testing")["perceptual correspondence"].startswith(
        "2 of 2 in ground_truth"
    )


def test_every_method_of_a_report_has_one():
    assert [found.method for found in cards(document(), "")] == ["mine", "other"]


def test_a_registered_method_has_one_without_a_report():
    found = carding.of("smoothgrad", "attr-report", None)
    assert found.source == "there is no report at attr-report: what is registered alone"
    assert "random, from a seed" in lines(found, "Methodology")["determinism"]
    assert "Smilkov" in lines(found, "Method")["reference"]
    assert carding.of("smoothgrad", "r", document()).source.startswith("r does not have it")


def test_facts_of_a_method_are_read_from_its_code():
    known = facts(["integrated_gradients", "random", "nobody"])
    assert list(known) == ["integrated_gradients", "random"]
    assert known["integrated_gradients"].axioms["completeness"] == 0.05
    assert known["integrated_gradients"].definition.startswith("Sum over channels")
    assert (known["random"].seeded, known["integrated_gradients"].seeded) == (True, False)


@pytest.fixture
def folder(tmp_path):
    files.keep(document(), tmp_path, Details())
    return str(tmp_path)


def test_the_command_prints_it_in_every_format(folder, capsys):
    def printed(*arguments):
        assert main(["card", "mine", folder, *arguments]) == 0
        return capsys.readouterr().out

    text = printed()
    assert text.startswith("mine\n")
    assert max(map(len, text.splitlines()[2:])) <= 90
    assert "\n  reference                 Bach et al. 2015\n" in text
    assert "- **not to y**: no gradient\n" in printed("--format", "md")
    html = printed("--format", "html")
    assert "<dt>not to y</dt><dd>no gradient</dd>" in html
    assert "Content-Security-Policy" in html
    assert "<script" not in html
    card = loads(Card, printed("--format", "json"))
    assert [section.title for section in card.sections][:2] == ["Method", "Place"]


def test_an_unknown_method_is_named_with_a_suggestion(folder, capsys):
    assert main(["card", "min", folder]) == 1
    assert "no method is called 'min'; did you mean mine" in capsys.readouterr().err
    assert main(["card", "salience"]) == 1
    assert "did you mean saliency" in capsys.readouterr().err


def test_foreign_text_stays_text():
    foreign = replace(FACTS, definition="<b>|`\x1b[2J", reference="*a*_b_ [x](y)")
    settings = replace(document().settings, facts={"mine": foreign})
    found = carding.of("mine", "here", document(settings=settings))
    assert "\x1b" not in carding.render(found)
    assert "<b>" not in carding.as_html(found)
    assert "&lt;b>" in carding.as_markdown(found)
    assert r"\*a\*" in carding.as_markdown(found)
