"""The end of a run at size: what is sent, how long it takes, what the report weighs."""

import subprocess
import sys
import time

import pytest

from attrcheck.engine.resampling import RESAMPLES, condense
from attrcheck.engine.results import Envelope, RunSettings
from attrcheck.engine.wire import dumps
from attrcheck.plugin.conclusion import conclude
from attrcheck.plugin.session import Session
from attrcheck.report import files
from benchmarks.closing import simulate

METHODS = 32


def text_of(result, cases):
    settings = RunSettings("default", 100, 0, "cpu", list(result.outcomes), cases, METHODS)
    return dumps(Envelope(result.case, settings, "", threads=1, case=condense(result)))


@pytest.fixture(scope="module")
def texts():
    """What 400 cases send."""
    return [text_of(result, 400) for result in simulate(400, METHODS)]


def close(texts):
    """Seconds of the processor that the controller takes, and the report."""
    session, start = Session(), time.process_time()
    for text in texts:
        session.take(text)
    document, _, _ = conclude(session, [], "none", workers=1)
    text = files.as_json(document)
    return time.process_time() - start, text


def test_a_score_on_a_resample_takes_little_more_than_a_byte_on_the_wire(texts):
    # A float64 in base64 takes 10.7; some 400 bytes of each outcome have other reasons.
    most = METHODS * (1.4 * RESAMPLES + 400)
    assert max(map(len, texts)) < most


def test_four_times_the_cases_take_about_four_times_as_long(texts):
    close(texts[:20])
    few, _ = close(texts[:100])
    many, _ = close(texts)
    assert many < 6 * few
    assert many < 30


def test_the_report_takes_little_room(texts):
    _, text = close(texts[:20])
    # Curves of ten points and all; it was 720 bytes.
    assert len(text) < 20 * METHODS * 400


def test_closing_a_run_takes_no_torch():
    program = (
        "import sys, attrcheck.plugin.conclusion, attrcheck.report.baselines\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
