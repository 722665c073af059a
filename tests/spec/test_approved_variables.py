"""Which variables and values may be approved, and which are among the approved ones."""

import pytest

from luthier.spec.approvals import harmless, is_allowed, problem_of_values, variables_of
from luthier.spec.component import Component
from luthier.store.server_store import Approval
from luthier.submission.submitted_job import Offer, refusal

HOSTILE = {
    "OMPI_MCA_orte_fork_agent": "rm",
    "OMPI_MCA_plm_rsh_agent": "sh",
    "OMPI_MCA_opal_event_include": "x",
    "TAR_OPTIONS": "--to-command=sh",
    "SPARK_SUBMIT_OPTS": "-javaagent:x.jar",
    "HYDRA_LAUNCHER_EXEC": "rm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC": "rm",
    "OPAL_PREFIX": "x",
    "OPENSSL_CONF": "x",
    "CC": "rm",
    "OMPI_CC": "rm",
    "RSYNC_RSH": "sh",
    "https_proxy": "evil.example:80",
    "LOCALDOMAIN": "evil.example",
    "OMPI_MCA_of_tomorrow_agent": "rm",
    "SITE_RUNS_THIS_FIRST": "rm",
}
"""The variables of an attack that the rule of forbidden names let through, and two that no list can know."""


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        ("1..64", ["1", "7", "64"], ["0", "65", "-1", "1.5", "7M", "07x", "", "1e1", "٣", "1..64 ", "0x10", "7 "]),
        ("-4..-1", ["-4", "-1"], ["0", "4"]),
        ("0.5..2.0", ["0.5", "1", "1.25", "5e-1"], ["2.1", "nan", "inf", "1k"]),
        ("4k..1M", ["4k", "4096", "64k", "1M"], ["1", "2M", "4q", "1.5k"]),
        ("close spread", ["close", "spread"], ["clos", "close spread", "CLOSE", ""]),
        ('"" x', ["", "x"], ['"', "y"]),
        ("1..4 auto", ["4", "auto"], ["5", "1..4x"]),
        ("rm..sh", ["rm..sh"], ["rm", "sh"]),
    ],
)
def test_values_are_compared_exactly(allowed: str, inside: list[str], outside: list[str]) -> None:
    assert [text for text in [*inside, *outside] if is_allowed(allowed, text)] == inside


@pytest.mark.parametrize("name", HOSTILE)
def test_the_table_of_harmless_variables_has_none_of_an_attack(name: str) -> None:
    assert harmless(name) is None


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("OMP_NUM_THREADS", ["1", "64"], ["0", "4,2", "rm", "1e3"]),
        ("OMP_PROC_BIND", ["close", "true"], ["/bin/sh", "x"]),
        ("OMP_SCHEDULE", ["guided"], ["x"]),
        ("MKL_NUM_THREADS", ["8"], ["-1"]),
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", ["1"], ["2"]),
        ("OMPI_MCA_coll_tuned_allreduce_algorithm", ["0", "6"], ["x", "6x", "-1"]),
        ("OMPI_MCA_coll_tuned_allreduce_algorithm_segmentsize", ["1048576"], ["1M"]),
        ("OMPI_MCA_coll_tuned_bcast_algorithm_chain_fanout", ["4"], ["rm"]),
    ],
)
def test_harmless_variables(name: str, good: list[str], bad: list[str]) -> None:
    allowed = harmless(name)
    assert allowed is not None
    assert problem_of_values(name, allowed) is None
    assert [text for text in [*good, *bad] if is_allowed(allowed, text)] == good
    for other in (f"{name}_FILE", f"X{name}", name.swapcase(), f"{name}\n", name[:-1]):
        assert harmless(other) is None, other


@pytest.mark.parametrize(
    "name", ["OMPI_MCA_coll_tuned_dynamic_rules_filename", "OMPI_MCA_coll_tuned_x_algorithm", "OMP_TOOL_LIBRARIES"]
)
def test_files_and_unknown_operations_are_not_in_the_table(name: str) -> None:
    assert harmless(name) is None


@pytest.mark.parametrize(
    ("name", "allowed", "said"),
    [
        ("LD_PRELOAD", "x", "can change which programs"),
        ("A", "", "no values"),
        ("A", "/bin/sh", "other characters"),
        ("A", "$(rm)", "other characters"),
        ("A", "9..1", "is empty"),
        ("A", "x " * 1001, "more than 2000"),
        ("A", "x" * 300, "more than 256"),
    ],
)
def test_what_cannot_be_approved(name: str, allowed: str, said: str) -> None:
    assert said in str(problem_of_values(name, allowed))


def test_what_a_component_declares_is_proposed() -> None:
    variable = {"env_var": True, "type": "int"}
    component = Component.model_validate(
        {
            "parameters": {
                "DEPTH": {**variable, "default": 1, "min": 1, "max": 99},
                "SIZE": {**variable, "default": 4, "min": 4, "max": 64, "suffix": "M"},
                "UNITS": {**variable, "min": "4k", "max": "1M", "step": 2, "step_type": "multiplicative"},
                "REAL": {"env_var": True, "type": "float", "default": 0.5, "min": 0.0, "max": 1.0},
                "MODE": {"env_var": True, "type": "str", "default": "slow", "values": ["slow", "fast"]},
                "EMPTY": {"env_var": True, "type": "str", "default": ""},
                "SPACE": {"env_var": True, "type": "str", "default": "a b"},
                "SWITCH": {"env_var": True, "type": "bool", "default": True},
                "NONE": {**variable, "optional": True},
                "OMP_NUM_THREADS": {**variable, "default": 1},
                "LD_PRELOAD": {"env_var": True, "type": "str", "default": "x"},
                "option": {"cli_var": True, "type": "int", "default": 1},
            }
        }
    )
    found = {one.name: one for one in variables_of(component)}
    assert {name: one.proposed for name, one in found.items()} == {
        "DEPTH": "1..99",
        "SIZE": "4M..64M",
        "UNITS": "4k..1M",
        "REAL": "0.0..1.0",
        "MODE": "slow fast",
        "EMPTY": '""',
        "SPACE": None,
        "SWITCH": "true",
        "NONE": None,
        "OMP_NUM_THREADS": "1..4096",
        "LD_PRELOAD": None,
    }
    assert [name for name, one in found.items() if one.problem] == ["LD_PRELOAD"]


def approved(version: str = "v", **allowed: str) -> list[Approval]:
    return [Approval("mpi", name, values, version, "root", 1.0) for name, values in allowed.items()]


def test_the_whole_configuration_must_be_approved() -> None:
    offer = Offer("mpi", {"A": "5", "B": "x"}, version="v")
    assert refusal(offer, approved(A="1..9", B="x y")) is None
    assert "no variable of component mpi is approved" in str(refusal(offer, []))
    assert "luthier component approve mpi" in str(refusal(offer, []))
    assert "B of component mpi is not approved" in str(refusal(offer, approved(A="1..9")))
    assert "A=5 is not among the values approved for component mpi: 1..4" in str(refusal(offer, approved(A="1..4")))
    assert "another version" in str(refusal(offer, approved(version="w", A="1..9", B="x y")))


def test_names_in_the_line_for_users_are_quoted() -> None:
    assert "'x; rm -rf .'" in str(refusal(Offer("x; rm -rf .", {"A": "1"}), []))
