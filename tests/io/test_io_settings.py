"""How settings are given: the list in LUTHIER_IO, H5Tuner's XML, and what happens to bad ones."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.io.io_runs import Libraries
from tests.io.test_io_hdf5 import offsets

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- as H5Tuner's paper has it -->
<Parameters>
    <High_Level_IO_Library>
        <alignment> 0, 65536 </alignment>
        <alignment FileName="special.h5">0,196608</alignment>
        <sieve_buf_size>262144</sieve_buf_size>
    </High_Level_IO_Library>
    <Middleware_Layer>
        <cb_buffer_size>1048576</cb_buffer_size>
        <cb_nodes>32</cb_nodes>
    </Middleware_Layer>
    <Parallel_File_System>
        <striping_factor FileName='other &amp; "more".h5'>4</striping_factor>
    </Parallel_File_System>
</Parameters>
"""


def test_files_of_h5tuner_are_read(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    (tmp_path / "config.xml").write_text(XML)
    env = {"LUTHIER_IO_XML": str(tmp_path / "config.xml"), "LUTHIER_IO_QUIET": "1"}
    for name, alignment in (("plain.h5", 65536), ("my-special.h5", 196608)):
        ended = io.run([hdf5_program, "two_sizes", tmp_path / name], tmp_path, env=env)
        assert ended.stderr == ""
        outcome = ended.of("hdf5_program")["settings"]
        assert outcome["applied"] == {"alignment_threshold": "0", "alignment": str(alignment), "sieve_buffer": "262144"}
        assert set(outcome["without_effect"]) == {"cb_nodes", "cb_buffer_size", "striping_factor"}
        assert all(offset % alignment == 0 for offset in offsets(tmp_path / name).values())
    assert any(offset % 196608 for offset in offsets(tmp_path / "plain.h5").values())


def test_the_list_comes_before_the_file(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    (tmp_path / "config.xml").write_text(XML)
    env = {"LUTHIER_IO_XML": str(tmp_path / "config.xml"), "LUTHIER_IO_QUIET": "1"}
    ended = io.run([hdf5_program, "two_sizes", tmp_path / "x.h5"], tmp_path, "alignment=32k", env)
    assert ended.of("hdf5_program")["settings"]["applied"]["alignment"] == "32k"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "<Parameters> is expected"),
        ("<Parameters>", 1, "a section is expected"),
        ("<Parameters>\n<Other/>\n</Parameters>", 2, "sections are"),
        ("<Parameters>\n<Middleware_Layer>\n<cb_nodes>4</cb_node>\n", 3, "end tag does not match"),
        ("<Parameters>\n<Middleware_Layer><cb_nodes name='x'>4</cb_nodes>", 2, "the only attribute is FileName"),
        ("<Parameters>\n<Middleware_Layer>\n<cb_nodes>&x;</cb_nodes>", 3, "unknown entity"),
        ("<Parameters>\n<Middleware_Layer FileName='x'>", 2, "FileName belongs to a setting, not to a section"),
        ("<Parameters FileName='x'>", 1, "FileName belongs to a setting, not to <Parameters>"),
        ("<Parameters><!-- \n\n", 3, "comment without end"),
        ("<Parameters></Parameters>\n<more/>", 2, "something follows </Parameters>"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><Parameters/>", 1, "a name is expected"),
        (f"<Parameters><Middleware_Layer><cb_nodes>{'9' * 5000}</cb_nodes>", 1, "text is too long"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(
    io: Libraries, hdf5_program: Path, tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "config.xml"
    path.write_text(text)
    ended = io.run([hdf5_program, "two_sizes", tmp_path / "x.h5"], tmp_path, env={"LUTHIER_IO_XML": str(path)})
    assert ended.returncode == 0
    assert ended.stderr.startswith(f"luthier io: {path}:{line}: {problem}")
    assert ended.stderr.count("\n") == 1


def test_a_missing_file_is_told(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    for path in ("/nonexistent.xml", "/dev/zero", str(tmp_path)):
        ended = io.run([hdf5_program, "two_sizes", tmp_path / "x.h5"], tmp_path, env={"LUTHIER_IO_XML": path})
        assert ended.returncode == 0
        assert ended.stderr.startswith(f"luthier io: LUTHIER_IO_XML: cannot read {path}: ")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("alinment=4k", "unknown setting 'alinment' is ignored"),
        ("alignment=", "alignment: invalid value '' is ignored; expected a whole number from 1"),
        ("alignment=-1", "alignment: invalid value '-1'"),
        ("alignment=1T", "alignment: invalid value '1T'"),
        ("alignment=99999999999999999999", "invalid value"),
        ("chunk=4x", "chunk: invalid value '4x' is ignored; expected sizes such as 64x1024"),
        ("chunk=4x0", "invalid value"),
        ("chunk_cache_w0=1.5", "expected a number from 0 to 1"),
        ("fill_time=always", "expected alloc, never or ifset"),
        ("transfer=both", "expected independent or collective"),
        ("romio_ds_read=yes", "expected disable, enable or automatic"),
        ("metadata_cache=1G", "expected a whole number from 1024 to 134217728"),
        ("=", "unknown setting '' is ignored"),
    ],
)
def test_a_bad_setting_is_one_line_and_the_others_hold(
    io: Libraries, hdf5_program: Path, tmp_path: Path, setting: str, problem: str
) -> None:
    file = tmp_path / "x.h5"
    ended = io.run([hdf5_program, "two_sizes", file], tmp_path, f"alignment=64k, {setting}")
    assert ended.returncode == 0
    assert problem in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert offsets(file)["large"] % 65536 == 0
    outcome = ended.of("hdf5_program")["settings"]
    assert (outcome["unknown"], outcome["applied"]) == ([setting.partition("=")[0]], {"alignment": "64k"})


def test_quiet_keeps_warnings_for_the_report(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    ended = io.run([hdf5_program, "two_sizes", tmp_path / "x.h5"], tmp_path, "a=1,chunk=8x8", {"LUTHIER_IO_QUIET": "1"})
    assert ended.stderr == ""
    assert len(ended.of("hdf5_program")["warnings"]) == 2


def test_warnings_never_reach_a_file_of_the_program(io: Libraries, hdf5_program: Path, tmp_path: Path) -> None:
    ended = io.run([hdf5_program, "own_stderr", tmp_path / "x.h5"], tmp_path, "unknown=1,chunk=8x8")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "x.h5.text").read_text() == ""
    assert len(ended.of("hdf5_program")["warnings"]) == 2


def test_programs_without_hdf5_hear_nothing(io: Libraries, tmp_path: Path) -> None:
    ended = io.run(["sh", "-c", "ls /; cat /dev/null; exit 3"], tmp_path, "alignment=64k,unknown=1,cb_nodes=2")
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.of("cat")["settings"]["unknown"] == ["unknown"]


texts = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=60)
names = st.sampled_from(["alignment", "chunk", "chunk_cache_w0", "fill_time", "cb_nodes", "x"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.lists(st.tuples(names | texts, texts | st.integers().map(str)), max_size=70))
def test_no_list_of_settings_breaks_a_program(io: Libraries, tmp_path: Path, items: list[tuple[str, str]]) -> None:
    ended = io.run(["true"], tmp_path, ",".join(f"{name}={value}" for name, value in items))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.of("true")["version"] == 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, len(XML)), length=st.integers(0, 40), inserted=texts)
def test_no_file_breaks_a_program(io: Libraries, tmp_path: Path, start: int, length: int, inserted: str) -> None:
    path = tmp_path / "config.xml"
    path.write_text(XML[:start] + inserted + XML[start + length :])
    ended = io.run(["true"], tmp_path, env={"LUTHIER_IO_XML": str(path)})
    assert (ended.returncode, ended.stderr) == (0, "")
