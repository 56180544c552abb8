"""Datasets and models by name: on the command line, in the ini file, and in tables of a project."""

import os

import pytest

import attrcheck
from attrcheck.cli import main
from attrcheck.plugin import tables
from attrcheck.plugin.tables import TableError
from tests.conftest import forgetting
from tests.datasets.drawing import class_folders
from tests.worlds import ITEMS

pytest_plugins = ["pytester"]

MODELS = """
import attrcheck

@attrcheck.model("mine", datasets="pets*,val")
def mine(dataset):
    "Never built: these runs only collect."
"""
COLLECT = (
    "--collect-only",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--attr-protocols=morf,lerf",
)


def write(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return folder / "pyproject.toml"


@pytest.fixture
def project(pytester):
    pytester.makeconftest(MODELS)
    pytester.makepyfile(test_suite=ITEMS)
    class_folders(pytester.path / "data/val")
    class_folders(pytester.path / "pets")
    return pytester


def collect(project, *options):
    """Collect in this process; what is bound and registered is forgotten afterwards."""
    with forgetting():
        return project.runpytest_inprocess(*COLLECT, *options)


def collected(project, *options):
    result = collect(project, *options)
    return [
        line.partition("[")[2].rstrip("]")
        for line in result.outlines
        if line.startswith("test_suite.py::")
    ], result


def test_names_in_tables_are_bound_with_paths_from_the_file(registries, tmp_path):
    class_folders(tmp_path / "val")
    file = write(
        tmp_path,
        """
        [tool.attrcheck.datasets]
        imagenet = "folder:val"
        birds = { spec = "folder:/data/birds", masks = "../masks" }
        [tool.attrcheck.models]
        r50 = "timm:resnet50.a1_in1k"
        """,
    )
    tables.bind(file)
    tables.bind(file)  # as often as it is asked for
    assert {"imagenet", "birds"} < set(attrcheck.dataset)
    assert "r50" in list(attrcheck.model)
    assert str(attrcheck.dataset.spec_of("imagenet")) == f"folder:{tmp_path.as_posix()}/val"
    assert attrcheck.dataset.spec_of("birds").options == {"masks": "../masks"}
    assert attrcheck.dataset.get("imagenet").load().class_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.attrcheck.dataset]\nx = 'folder:a'", r"\[tool.attrcheck.dataset\] .*mean datasets"),
        ("[tool.attrcheck]\ndatasets = 3", "is not a table"),
        ("[tool.attrcheck.datasets]\nx = 3", r'write x = "prefix:rest", .*, not 3'),
        ("[tool.attrcheck.datasets]\nx = { path = 'a' }", 'write x = "prefix:rest"'),
        ("[tool.attrcheck.datasets]\nx = '/data/val'", "dataset 'x': write folder:/data/val"),
        ("[tool.attrcheck.datasets]\nx-y = 'folder:a'", "name 'x-y' must match"),
        ("[tool.attrcheck.datasets]\ndigits = 'folder:a'", "already a dataset called 'digits'"),
        ("[tool.attrcheck.models]\nx = 'folder:a'", "model 'x': 'folder:.*/a' has no prefix"),
        ("[tool.attrcheck", "cannot be read"),
    ],
)
def test_a_wrong_entry_names_its_file_and_what_to_write(registries, tmp_path, text, words):
    with pytest.raises(TableError, match=rf"pyproject\.toml.*{words}"):
        tables.bind(write(tmp_path, text))


def test_a_project_without_tables_binds_nothing(registries, tmp_path):
    before = list(attrcheck.dataset)
    tables.bind(None)
    tables.bind(tmp_path / "pyproject.toml")
    tables.bind(write(tmp_path, "[project]\nname = 'x'"))
    assert list(attrcheck.dataset) == before


def test_the_file_is_that_of_the_nearest_folder_above(tmp_path):
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    file = write(tmp_path, "")
    assert tables.find(below) == file
    assert tables.find(tmp_path) == file


def test_specs_on_the_command_line_become_cases(project):
    ids, _ = collected(project, "--attr-datasets", "folder:data/val", "--attr-models=mine")
    assert ids == ["val-mine-lerf", "val-mine-morf"]
    ids, _ = collected(project, "--attr-datasets=pets2=folder:data/val", "--attr-models=mine")
    assert ids == ["pets2-mine-lerf", "pets2-mine-morf"]


def test_models_by_prefix_meet_only_what_does_not_ship_with_attrcheck(project):
    project.makepyfile(
        fake_models="""
from attrcheck.models import ModelSpec

def resolve(rest, leaf=()):
    return ModelSpec("timm:" + rest, None)
"""
    )
    project.makeconftest(
        "import attrcheck\nattrcheck.model.prefixes['timm'] = 'fake_models'\n" + MODELS
    )
    models = "--attr-models=timm:resnet-50.a1_in1k,r18=timm:resnet18"
    ids, _ = collected(project, "--attr-datasets=digits,pets=folder:pets", models)
    assert ids == [
        f"pets-{model}-{protocol}"
        for model in ("timm:resnet_50.a1_in1k", "r18")
        for protocol in ("lerf", "morf")
    ]
    _, result = collected(project, "--attr-datasets=digits", models)
    result.stderr.fnmatch_lines(["*none of the models selected knows any of the datasets*"])


def test_the_ini_file_says_the_same_with_paths_from_the_root(project):
    project.makeini("[pytest]\nattr_datasets = pets=folder:data/val\nattr_models = mine\n")
    assert collected(project)[0][0] == "pets-mine-lerf"
    project.chdir()
    os.chdir(project.mkdir("below"))
    result = collect(project, str(project.path))
    result.stdout.fnmatch_lines(["*test_suite.py::test_case?pets-mine-lerf?"])


def test_a_table_of_the_project_is_selected_by_globs(project):
    write(
        project.path,
        """
        [tool.pytest]
        minversion = "9.0"
        [tool.attrcheck.datasets]
        pets = "folder:pets"
        pets2 = "folder:data"
        """,
    )
    ids, _ = collected(project, "--attr-datasets=pet*", "--attr-models=mine")
    assert ids == [f"{name}-mine-{p}" for name in ("pets", "pets2") for p in ("lerf", "morf")]
    ids, _ = collected(project, "--attr-datasets=pets=folder:data", "--attr-models=mine")
    assert ids == ["pets-mine-lerf", "pets-mine-morf"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("folder:nowhere", "*the folder of pictures *nowhere does not exist*"),
        ("folder:pets,folder:data/pets", "*would both be called 'pets'*NAME=folder:*data/pets*"),
    ],
)
def test_what_cannot_be_is_one_line(project, option, words):
    result = collect(project, f"--attr-datasets={option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_the_command_line_beside_pytest_knows_the_tables(registries, tmp_path, monkeypatch, capsys):
    class_folders(tmp_path / "pets")
    write(tmp_path, "[tool.attrcheck.datasets]\nmine = 'folder:pets'\ngone = 'folder:gone'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["list", "datasets"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "The pictures of a folder, read on demand." in lines["mine"]
    assert "missing: the folder of pictures" in lines["gone"]
    write(tmp_path, "[tool.attrcheck.datasets]\nmine = 3\n")
    assert main(["list", "datasets"]) == 1
    assert "write mine = " in capsys.readouterr().err
