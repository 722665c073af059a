"""Ways of a value that are not seen in the text: the kernel does what the program does, with the same content."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.kernel.same_io import check_same
from tests.io.kernel.tiny import discovered

from luthier.errors import KernelRefusedError

COMPARE = "static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }"
MAIN = 'int main(int argc, char **argv)\n{\n    int x = atoi(argv[2]);\n    out = fopen(argv[1], "w");\n    '
END = "\n    return fclose(out);\n}\n"
PAIR = "struct a { int *p; int n; } a; struct b { int *q; int m; } b; int k = 1; a.p = &k; a.n = x;"
WAYS = {
    "a result of bsearch": COMPARE + MAIN + "int v[] = {1, 2, 5, 9}, k = 5, *f = bsearch(&k, v, 4, sizeof *v, cmp);"
    " if (f) *f = x * 7; emit(v[2]);" + END,
    "a result of lfind": COMPARE + MAIN + "int v[] = {1, 2, 5, 9}, k = 5; size_t n = 4;"
    " int *f = lfind(&k, v, &n, 4, cmp);"
    " if (f) *f = x * 7; emit(v[2]);" + END,
    "a result of a builtin": 'char d[9], *q = __builtin_memcpy(d, "hello", 6); q[2] = x + 1; emit(d[2]);',
    "the environment": 'char e[40]; sprintf(e, "%d", x); setenv("ZZ", e, 1); char *p = getenv("ZZ"); p[0] = 56;'
    ' emit(atoi(getenv("ZZ")));',
    "a string in the environment": 'static char e[40]; sprintf(e, "ZZ=%d", x); putenv(e); e[3] = 57;'
    ' emit(atoi(getenv("ZZ")));',
    "a buffer of the C library": "time_t s = x * 100000, z = 0; struct tm *a = gmtime(&s); if (x > 1) gmtime(&z);"
    " emit(a->tm_mday);",
    "pointers copied to another type": f"{PAIR} memcpy(&b, &a, sizeof a); *b.q = x + 5; emit(k); emit(b.m);",
    "pointers copied through bytes": f"{PAIR} char c[sizeof a]; memcpy(c, &a, sizeof a); memcpy(&b, c, sizeof b);"
    " *b.q = x + 5; emit(k);",
    "pointers copied byte by byte": "int k = 1, *p = &k, *q; char *s = (char *)&p, *d = (char *)&q;"
    " for (int i = 0; i < 8; i++) d[i] = s[i]; *q = x; emit(k);",
    "the number of characters": 'int n = 0; printf("%d%n", x * 300, &n); emit(n);',
    "a function at the end": "static int g; static void bye(void) { emit(g); }"
    + MAIN
    + "void (*f)(void) = bye; atexit(f); g = x; return 0;\n}\n",
    "a function in a table": "static int g; static void bye(void) { emit(g); } static void (*t[])(void) = {bye};"
    + MAIN
    + "atexit(t[0]); g = x; return 0;\n}\n",
    "calls of a function in a table": "static int calls; static int cmp(const void *a, const void *b)"
    " { return calls++, 0; }"
    " static int (*t[])(const void *, const void *) = {cmp};"
    + MAIN
    + "int v[9] = {0}; qsort(v, x + 2, sizeof *v, t[0]); emit(calls);"
    + END,
    "the size in a typedef": "int n = 1; n = x + 2; typedef char row[n]; n = 1; emit(sizeof(row)); emit(n);",
    "the size in a cast": "int n = 1; char b[100]; n = x + 2; emit((char *)((char (*)[n])b + 1) - b); n = 1; emit(n);",
    "a static local through its address": "static int *cell(void) { static int n = 3; return &n; }"
    + MAIN
    + "*cell() = x; int *q = cell(); *q += 1; emit(*cell());"
    + END,
    "strtol and sscanf": 'char s[30], *e; sprintf(s, "12 %d", x); long a = strtol(s, &e, 10); *e = 0; emit(strlen(s));'
    ' int k, n; sscanf(e + 1, "%d%n", &k, &n); emit(k + n + a);',
    "a switch into a loop": "int n = x + 3, a = 0; switch (n % 4) { case 0: do { a++; case 3: a++; case 2: a++;"
    " case 1: a++; } while ((n -= 4) > 0); } emit(a);",
    "a goto into a loop": "int a = 0; if (x > 2) goto in; for (; a < 10; a++) { a += 2; in: a += x; } emit(a);",
    "effects in conditions": "int a = 1, b; if ((b = x) > 2 && (a += b)) ; x > 1 && (a += 5);"
    " x > 2 ? (a = x) : (b = x);"
    " *(x > 4 ? &a : &b) += x; emit(a); emit(b); while ((a -= 2) > 0) b++; emit(b);",
}


@pytest.mark.parametrize("name", WAYS)
def test_a_hidden_way(name: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        missing("gcc is not installed; as root: sh tests/services.sh")
    check_same(WAYS[name], tmp_path)


def test_trees_of_the_c_library_are_refused(tmp_path: Path) -> None:
    text = f"#include <search.h>\n{COMPARE}\nint main(void) {{ void *r = 0; int k; return !tsearch(&k, &r, cmp); }}\n"
    with pytest.raises(KernelRefusedError, match="a table or tree of the C library is not supported"):
        discovered(tmp_path, program=text)
