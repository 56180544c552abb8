import functools
import os
import subprocess
import sys
import textwrap

import pytest

import attrcheck
from attrcheck.contracts import Method
from attrcheck.registry import Registry, RegistryError, select


@pytest.fixture
def things():
    """A registry with the built-ins of `attrcheck.removal`, and things of its own."""
    registry = Registry("thing", lambda name, function, **more: (name, function, more), "removal_")
    registry.__dict__["_declared"] = {"built_in": "somewhere.built_in"}
    for name in ("alpha", "alpine", "beta"):
        registry(name)(len)
    return registry


def python(code, *paths):
    """Run code in a fresh interpreter that also sees these folders."""
    path = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


def install(folder, entry_points, **modules):
    """Lay out a distribution as pip would, with modules of its own."""
    about = folder / "extra-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(textwrap.dedent(entry_points))
    for name, text in modules.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def said(code, *paths):
    """What a fresh interpreter prints, which must go well."""
    result = python(code, *paths)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_decorator_registers_and_returns_the_function(registries):
    def function(model, images, targets):
        return images

    decorated = attrcheck.method("my_own.method_2", constant="why not", dummy=True)(function)
    assert decorated is function
    registered = attrcheck.method.get("my_own.method_2")
    assert registered == Method(
        "my_own.method_2", function, registered.not_applicable, "why not", True
    )
    assert "my_own.method_2" in attrcheck.method
    assert "my_own.method_2" in list(attrcheck.method)


def test_nothing_is_registered_before_the_function_is_decorated(registries):
    attrcheck.method("half_done")
    assert "half_done" not in attrcheck.method


def test_names_come_sorted(things):
    assert list(things) == ["alpha", "alpine", "beta", "built_in"]


def test_the_same_name_twice_is_an_error_that_names_the_second(things):
    with pytest.raises(RegistryError, match=r"already a thing called 'alpha'.* in builtins"):
        things("alpha")(len)


@pytest.mark.parametrize("name", ["saliency", "random"])
def test_the_name_of_a_built_in_is_taken_whether_or_not_it_was_imported(registries, name):
    with pytest.raises(RegistryError, match=f"already a method called '{name}'"):
        attrcheck.method(name)(lambda model, images, targets: images)
    attrcheck.method.get(name)
    with pytest.raises(RegistryError, match=f"already a method called '{name}'"):
        attrcheck.method(name)(lambda model, images, targets: images)


@pytest.mark.parametrize("name", ["", "A", "a-b", "1a", "_a", "a b", "a/b", "ä", "a\n", ".a"])
def test_a_malformed_name_is_refused_at_once(things, name):
    with pytest.raises(RegistryError, match=r"thing name .* must match .*hyphen"):
        things(name)


def test_a_decorator_without_a_name_says_what_to_write(things):
    def function():
        pass

    with pytest.raises(RegistryError, match="name"):
        things(function)


def test_an_unknown_name_gets_close_matches_or_the_list(things):
    with pytest.raises(RegistryError, match="no thing is called 'alpa'; did you mean alpha"):
        things.get("alpa")
    with pytest.raises(RegistryError, match="there are: alpha, alpine, beta, built_in"):
        things.get("zzz")


def test_an_empty_registry_says_so():
    empty = Registry("thing", tuple, "nowhere")
    empty.__dict__["_declared"] = {}
    with pytest.raises(RegistryError, match="there are: none"):
        empty.get("x")


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ("", ["alpha", "alpine", "beta", "built_in"]),
        (" , ", ["alpha", "alpine", "beta", "built_in"]),
        ("alpha", ["alpha"]),
        ("beta,alpha", ["alpha", "beta"]),
        ("al*, beta", ["alpha", "alpine", "beta"]),
        ("alpha,al*", ["alpha", "alpine"]),
        ("!al*", ["beta", "built_in"]),
        ("al*,!alpine", ["alpha"]),
        ("!alpine,al*", ["alpha"]),
        ("?eta", ["beta"]),
    ],
)
def test_select_takes_globs_in_the_order_of_the_registry(things, patterns, chosen):
    assert things.select(patterns) == chosen


def test_select_refuses_an_empty_choice(things):
    with pytest.raises(RegistryError, match=r"'al\*,!alpha,!alpine' selects no thing; there are"):
        things.select("al*,!alpha,!alpine")
    with pytest.raises(RegistryError, match="selects no thing"):
        things.select("!*")


@pytest.mark.parametrize("patterns", ["alpa", "alpha,alpa", "!alpa", "alpha,!alpa"])
def test_select_refuses_a_glob_that_matches_nothing(things, patterns):
    with pytest.raises(RegistryError, match="'alpa'; did you mean alpha"):
        things.select(patterns)


def test_plain_select_keeps_the_given_order():
    assert select(["c", "a", "b"], ["a", "c"]) == ["c", "a"]
    assert select(["c", "a", "b"], ["!a"]) == ["c", "b"]
    assert select([], ["a"]) == []


def test_built_ins_are_known_without_importing_them_or_torch():
    answer = said(
        """
        import sys
        import attrcheck
        for registry in (attrcheck.method, attrcheck.model, attrcheck.dataset,
                         attrcheck.protocol, attrcheck.removal, attrcheck.check):
            assert registry.select("") == sorted(registry), registry.kind
        assert "saliency" in attrcheck.method and "morf" in attrcheck.protocol
        assert not any(name.startswith("_") for name in attrcheck.method)
        heavy = {"torch", "numpy", "captum", "sklearn", "scipy", "attrcheck.methods.gradients"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert answer == "[]"


@pytest.mark.parametrize("kind", ["check", "dataset", "method", "protocol", "removal"])
def test_every_built_in_registers_its_file_name(kind):
    registry = getattr(attrcheck, kind)
    assert all(registry.get(name).name == name for name in registry)


METHOD = """
    import attrcheck

    @attrcheck.method("{name}")
    def function(model, images, targets):
        return images
"""


def test_an_entry_point_brings_a_method_without_being_imported(tmp_path):
    points = "[attrcheck.methods]\nextra_method = extra_module\n"
    install(tmp_path, points, extra_module=METHOD.format(name="extra_method"))
    answer = said(
        """
        import sys, attrcheck
        assert "extra_method" in attrcheck.method and "extra_method" in list(attrcheck.method)
        assert "extra_module" not in sys.modules
        print(attrcheck.method.get("extra_method").attribute.__module__)
        """,
        tmp_path,
    )
    assert answer == "extra_module"


@pytest.mark.parametrize("package", ["checks", "datasets", "models", "protocols", "removal"])
def test_every_kind_has_a_group_of_entry_points(tmp_path, package):
    install(tmp_path, f"[attrcheck.{package}]\nextra = extra_module\n")
    kind = package.removesuffix("s")
    assert said(f"import attrcheck; print('extra' in attrcheck.{kind})", tmp_path) == "True"


def test_an_entry_point_that_registers_nothing_is_named(tmp_path):
    install(tmp_path, "[attrcheck.methods]\nextra = extra_module\n", extra_module="")
    result = python("import attrcheck; attrcheck.method.get('extra')", tmp_path)
    assert "importing extra_module registered no method called 'extra'" in result.stderr


def test_an_entry_point_may_not_take_the_name_of_a_built_in(tmp_path):
    install(tmp_path, "[attrcheck.methods]\nsaliency = extra_module\n")
    result = python("import attrcheck; list(attrcheck.method)", tmp_path)
    assert "RegistryError: entry point 'saliency' of extra_module" in result.stderr
    assert "attrcheck.methods.gradients" in result.stderr


def test_a_name_has_at_most_a_hundred_characters(things):
    things("m" * 100)(len)
    with pytest.raises(RegistryError) as caught:
        things("m" * 101)
    expected = f"thing name '{'m' * 20}...' has 101 characters; take at most 100"
    assert str(caught.value) == expected


def test_an_entry_point_with_a_malformed_name_is_refused(tmp_path):
    install(tmp_path, "[attrcheck.methods]\nMy-Method = extra_module\n")
    result = python("import attrcheck; list(attrcheck.method)", tmp_path)
    assert "RegistryError" in result.stderr
    assert "'My-Method'" in result.stderr


def test_an_entry_points_name_is_taken_before_its_module_is_imported(tmp_path):
    points = "[attrcheck.methods]\nextra = extra_module\n"
    install(tmp_path, points, extra_module=METHOD.format(name="extra"))
    result = python("import attrcheck; attrcheck.method('extra')(lambda: 0)", tmp_path)
    assert "already a method called 'extra'" in result.stderr


@pytest.mark.parametrize(
    "modules",
    [
        {
            "extra_module": """
                import functools, attrcheck
                def general(model, images, targets, steps): return images
                attrcheck.method("extra")(functools.partial(general, steps=3))
            """
        },
        {
            "extra_module": "import extra_inner",
            "extra_inner": METHOD.format(name="extra"),
        },
        {
            "extra_module": """
                import attrcheck, extra_inner
                attrcheck.method("extra")(extra_inner.f)
            """,
            "extra_inner": "def f(model, images, targets): return images",
        },
    ],
    ids=["a partial", "by way of another module", "a function of another module"],
)
def test_the_module_of_an_entry_point_may_register_what_it_likes(tmp_path, modules):
    install(tmp_path, "[attrcheck.methods]\nextra = extra_module\n", **modules)
    answer = said("import attrcheck; print(attrcheck.method.get('extra').name)", tmp_path)
    assert answer == "extra"


def test_a_partial_can_be_registered(registries):
    def general(model, images, targets, steps):
        return images

    attrcheck.method("partial")(functools.partial(general, steps=3))
    assert attrcheck.method.get("partial").attribute.keywords == {"steps": 3}
