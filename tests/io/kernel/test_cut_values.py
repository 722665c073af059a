"""Values that reach control flow are not cut, whatever way they take: kernel and program agree on several inputs."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.kernel.same_io import check_same

from luthier.io.kernel import KernelOptions

CUT = KernelOptions(buffer_content="cut")
R = "struct r { double e; int last; };"
W = "fwrite(&v, sizeof v, 1, out);"
NEEDED = {
    "a field in a list": f"{R} struct r v = {{1, x < 2}}; {W} if (v.last) emit(1);",
    "a designated field": f"{R} struct r v = {{.last = x}}; {W} if (v.last > 1) emit(1);",
    "nested records": "struct { int k; struct { int m[2];"
    " union { int f; float g; }; } in; } v = {1, {{x, 2}, {x + 1}}};"
    f" {W} if (v.in.m[0] > 2 || v.in.f == 2) emit(4);",
    "an array of structs": f"{R} struct r v[] = {{{{x, 1}}, {{x + 1, x}}, [3] = {{.last = x}}}}; fwrite(v, sizeof v, 1,"
    " out); for (int i = 0; i < 4; i++) if (v[i].last) emit(7);",
    "a union": f"union {{ double d; int i[2]; }} v = {{.i = {{x, 2}}}}; {W} if (v.i[0] > 2) emit(4);",
    "bytes of a union": "union { double d; unsigned char c[8]; } v[3] = {{x}, {.c = {x, 1}}};"
    " fwrite(v, sizeof v, 1, out);"
    " if (v[1].c[0] > 2) emit(4);",
    "a compound literal": f"{R} struct r v; v = (struct r){{.last = x}}; {W} if (v.last > 1) emit(9);",
    "the address of a compound literal": f"{R} struct r *v = &(struct r){{.last = x}}; fwrite(v, sizeof *v, 1, out);"
    " if (v->last > 1) emit(9);",
    "memcpy of a struct": f"{R} struct r w = {{1, x}}, v; memcpy(&v, &w, sizeof v); {W} if (v.last) emit(7);",
    "assignment of a struct": f"{R} struct r w = {{1, x}}, v = {{0}}; v = w; {W} struct r z = v; if (z.last) emit(7);",
    "memset of a struct": f"{R} struct r v; memset(&v, x & 1, sizeof v); {W} if (v.last) emit(7);",
    "a struct as bytes": f"{R} struct r v = {{1, x}}; {W} unsigned char *b = (unsigned char *)&v;"
    " if (b[8] > 3) emit(7);",
    "a pointer by offsetof": f"{R} struct r v = {{1, x}}; int *p = (int *)((char *)&v + offsetof(struct r, last)); {W}"
    " if (*p > 3) emit(7);",
    "a pointer to a field": f"{R} struct r v = {{1, x}}; int *p = &v.last; {W} if (*p > 3) emit(7);",
    "calloc": f"{R} struct r *p = calloc(9, sizeof *p); if (x > 2) p[x % 4].last = x; fwrite(p, 9, sizeof *p, out);"
    " for (int i = 0; i < 9; i++) if (p[i].last) emit(7);",
    "returned and passed by value": f"""{R}
static struct r make(int x) {{ struct r v = {{.e = 1, .last = x}}; return v; }}
static int use(struct r v) {{ return v.last; }}
int main(int argc, char **argv)
{{
    out = fopen(argv[1], "w");
    struct r v = make(atoi(argv[2]));
    {W}
    if (use(v) > 2) emit(4);
    if (make(v.last + 1).last == 3) emit(3);
    return fclose(out);
}}""",
    "a field as an argument": """\
struct s { double d[4]; int flag; };
static void save(double *d, int n, int *flag) { fwrite(d, sizeof *d, n, out); if (*flag) emit(3); }
int main(int argc, char **argv)
{
    out = fopen(argv[1], "w");
    struct s v = {{1}, atoi(argv[2]) > 2};
    save(v.d, 4, &v.flag);
    fwrite(&v, sizeof v, 1, out);
    return fclose(out);
}""",
    "through a file": 'int *v = malloc(40), w = 0; v[0] = x; FILE *t = fopen("t", "wb"); fwrite(v, 4, 10, t);'
    " fclose(t);"
    ' t = fopen("t", "rb"); fread(&w, 4, 1, t); fclose(t); if (w > 4) emit(3);',
    "through lines of a file": 'char *v = malloc(40), w[9]; memset(v, x > 2 ? 10 : 65, 40); FILE *t = fopen("t", "w");'
    ' fwrite(v, 1, 40, t); fclose(t); t = fopen("t", "r"); while (fgets(w, 9, t)) emit(3); fclose(t);',
    "through a pipe": "char *v = malloc(400); for (int i = 0; i < 400; i++) v[i] = i * x;"
    ' FILE *p = popen("gzip > t", "w");'
    ' fwrite(v, 1, 400, p); pclose(p); p = fopen("t", "r"); while (fgetc(p) != EOF) emit(1); fclose(p);',
    "through memory": 'int v[2] = {x, 2}, w[2]; FILE *m = fmemopen(w, sizeof w, "w"); fwrite(v, sizeof v, 1, m);'
    " fclose(m);"
    " if (w[0] > 2) emit(1);",
}
ALLOCATIONS = {
    "the size grows in the branch": "int n = 8; char *p; if ((p = malloc(n))) { n = 100000000; }"
    " fwrite(p, 1, 8, out); emit(n);",
    "the size grows behind a comma": "int n = 8; char *p; p = malloc(n), n = 100000000; fwrite(p, 1, 8, out); emit(n);",
    "behind &&": "char *p = malloc(8); int n = 100000000; if (x > 99 && (p = malloc(n))) x++; fwrite(p, 1, 8, out);",
    "behind ||": "char *p = malloc(8); int n = 100000000; if (x < 99 || (p = malloc(n))) x++; fwrite(p, 1, 8, out);",
}
STILL_CUT = {
    "no part is needed": f"{R} struct r v = {{1, x}}; int flag = x > 1; {W} if (flag) emit(1);",
    "settings are read before": 'char *v = malloc(40); int n = 0; FILE *t = fopen("t", "w"); fprintf(t, "12");'
    " fclose(t);"
    ' t = fopen("t", "r"); fscanf(t, "%d", &n); fclose(t); v[1] = x; fwrite(v, 1, n, out);',
    "two allocations, both checked": "char *p, *q; int n = 10; if (!(p = malloc(n)) || !(q = malloc(n))) return 1;"
    " p[0] = q[0] = x; fwrite(p, 1, 8, out); fwrite(q, 1, 8, out);",
    "a failure that is explained": "char *p; if (!(p = malloc(x + 9))) { fputs(strerror(errno), stderr); exit(1); }"
    " p[0] = x; fwrite(p, 1, 8, out);",
}


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if shutil.which("gcc") is None:
        missing("gcc is not installed; as root: sh tests/services.sh")


@pytest.mark.parametrize("name", NEEDED)
def test_a_needed_value_is_not_cut(name: str, tmp_path: Path) -> None:
    found = check_same(NEEDED[name], tmp_path, CUT)
    assert any("content kept: " in note for note in found.notes)


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_a_fill_writes_new_memory_only(name: str, tmp_path: Path) -> None:
    found = check_same(ALLOCATIONS[name], tmp_path, CUT)
    assert any("is not a simple assignment" in note for note in found.notes)


@pytest.mark.parametrize("name", STILL_CUT)
def test_what_nothing_needs_is_still_cut(name: str, tmp_path: Path) -> None:
    found = check_same(STILL_CUT[name], tmp_path, CUT)
    assert all(note.endswith("content cut") for note in found.notes)
    assert "memset(" in found.files[0].text
