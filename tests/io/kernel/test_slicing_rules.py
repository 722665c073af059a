"""Each rule of the slicer on a tiny program: lines marked `// +` are kept, lines marked `// -` are dropped."""

import subprocess
from pathlib import Path

import pytest
from tests.io.kernel.tiny import check, discovered, kernel

from luthier.io.kernel import KernelOptions

CUT = KernelOptions(buffer_content="cut")

PROGRAMS = {
    "arguments backward": """\
    int n = 3; // +
    double unused = 2; // -
    char *data = malloc(n); // +
    data[0] = 'a'; // +
    unused = sqrt(unused); // -
    write(4, data, n); // +
    free(data); // +
""",
    "only assignments that reach the use": """\
    int i, sum = 0;
    for (i = 0; i < 100; i++) // -
        sum += i; // -
    for (i = 0; i < 3; i++) // +
        write(4, "abc", i); // +
    printf("%d", sum); // -
""",
    "values of the iteration before": """\
    int a = 1, b = 2, c = 3, n = 4, m = 5, waste = 6;
    for (int i = 0; i < 5; i++) { // +
        write(4, "abc", a); // +
        a = b; // +
        waste = c; // -
        b = c; // +
        if (i == 2) // +
            continue; // +
        c = 7; // +
    }
    while (argc-- > 0) { // +
        write(4, "abc", n); // +
        n = m; // +
        m = argc; // +
    }
    do { // +
        write(4, "abc", n); // +
        n = argc + 2; // +
    } while (++argc < 3); // +
    printf("%d", waste); // -
""",
    "fields of structs": """\
    struct { int rows, columns; double time; } grid;
    grid.rows = 4; // +
    grid.columns = 5; // -
    grid.time = 0.5; // -
    lseek(4, grid.rows, SEEK_SET); // +
    printf("%d %g", grid.columns, grid.time); // -
""",
    "the whole struct through memset and a pointer": """\
    struct pair { int a, b; } pair, *p = &pair;
    memset(p, 0, sizeof *p); // +
    p->b = 3; // -
    p->a += 2; // +
    write(4, "abc", pair.a); // +
""",
    "neighbouring fields that are passed as one array": """\
    struct { double x, y, z; } v;
    v.y = 2; // +
    write(4, &v.x, 3 * sizeof(double)); // +
""",
    "aliases by assignment": """\
    int a = 1, b = 2;
    int *p = &a; // +
    int *q = p; // +
    *q = 5; // +
    b = 6; // -
    write(4, "abcdef", a); // +
    printf("%d", b); // -
""",
    "pointers that are copied as bytes": """\
    int a = 1, b = 2;
    int *from[1] = {&a}, *to[1]; // +
    memcpy(to, from, sizeof to); // +
    *to[0] = 5; // +
    b = 6; // -
    write(4, "abcdef", a); // +
    printf("%d", b); // -
""",
    "pointers that are only compared as bytes": """\
    int a = 1, b = 2;
    int *one[1] = {&a}, *two[1] = {&b};
    if (memcmp(one, two, sizeof one)) // -
        *two[0] = 5; // -
    write(4, "abcdef", *one[0]); // +
    printf("%d", b); // -
""",
    "control structure, jumps and early exits": """\
    int n = 0;
    double waste = 0;
    while (1) { // +
        n++; // +
        if (n == 3) // +
            continue; // +
        if (n > 5) // +
            break; // +
        waste += n; // -
        write(4, "a", 1); // +
    }
    if (argc > 7) // +
        return 3; // +
    if (argc > 8) { // -
        waste *= 2; // -
    }
    if (argc > 9) { // +
        waste *= 3; // -
        exit(1); // +
    }
""",
    "every label and break of a switch": """\
    int n = 0, other = 0;
    switch (argc) { // +
    case 1: // +
        other = 1; // -
        break; // +
    case 2: // +
    case 3: // +
        n = 3; // +
    default: // +
        other = 2; // -
    }
    write(4, "abc", n); // +
    printf("%d", other); // -
""",
    "sizes of arrays of variable length": """\
    int n = argc * 2; // +
    int m = argc * 3; // -
    char data[n]; // +
    memset(data, 1, sizeof data); // +
    write(4, data, sizeof data); // +
    printf("%d", m); // -
""",
    "several declarations in one statement": """\
    int length = argc, other = argc * 2, *p = &length; // +
    double mass = 2, time = 3; // -
    write(4, "abc", *p); // +
    printf("%d %g", other, mass * time); // -
""",
    "hidden state": """\
    srand(3); // +
    double ignored = rand(); // +
    int n = rand() % 3; // +
    double time = clock(); // -
    write(4, "abc", n); // +
    printf("%g %g", ignored, time); // -
""",
    "output to the terminal is not I/O": """\
    double e = exp(argc); // -
    fprintf(stderr, "%g", e); // -
    puts("hello"); // -
    write(1, "abc", 3); // -
    write(3, "abc", 3); // +
""",
    "a stream that may be a file is I/O": """\
    FILE *out = argc > 1 ? fopen(argv[1], "w") : stdout; // +
    double e = exp(argc); // +
    fprintf(out, "%g", e); // +
""",
    "argument parsing": """\
    int n = 1, option, verbose = 0;
    while ((option = getopt(argc, argv, "n:v")) != -1) { // +
        if (option == 'n') // +
            n = atoi(optarg); // +
        else
            verbose = 1; // -
    }
    write(4, "abc", n); // +
    if (verbose) puts("done"); // -
""",
    "errno": """\
    double waste = 1;
    if (mkstemp(argv[0]) < 0 && errno != 3) // +
        return 1; // +
    waste = sin(waste); // -
    long n = strtol(argv[1], NULL, 10); // +
    if (errno == 0) // +
        write(4, "abc", n); // +
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule(name: str, tmp_path: Path) -> None:
    check(tmp_path, PROGRAMS[name])


FUNCTIONS = {
    "a function called for its effect on a global": """\
static int size;
static double mass;
static void set(int n) { size = n; }
static void weigh(int n) { mass += n; }
int main(void)
{
    set(3); // +
    weigh(3); // -
    write(4, "abc", size); // +
    printf("%g", mass); // -
    return 0;
}
""",
    "aliases by return value": """\
static int *larger(int *a, int *b)
{
    return *a > *b ? a : b; // +
}
int main(void)
{
    int a = 1, b = 2, c = 3;
    int *p = larger(&a, &b); // +
    *p = 3; // +
    c = 4; // -
    write(4, "abc", b); // +
    printf("%d", c); // -
    return 0;
}
""",
    "aliases by arguments": """\
static void set(int *to, int n)
{
    *to = n; // +
}
static void waste(double *to)
{
    *to = 2; // -
}
int main(void)
{
    int n; // +
    double d;
    set(&n, 3); // +
    waste(&d); // -
    write(4, "abc", n); // +
    printf("%g", d); // -
    return 0;
}
""",
    "goto and labels": """\
int main(int argc, char **argv)
{
    double waste = 0;
    int n = 2; // +
again: // +
    waste += n; // -
    if (n++ < argc) // +
        goto again; // +
    if (!argv[0]) // +
        goto end; // +
    write(4, "abc", n); // +
    waste = 3; // -
end: // +
    printf("%g", waste); // -
    return 0;
}
""",
    "pointers to functions": """\
static int one(int n)
{
    return n + 1; // +
}
static int two(int n)
{
    return n + 2; // +
}
static double other(double x) { return x; } // -
int main(int argc, char **argv)
{
    int (*table[2])(int) = {one, two}; // +
    double x = other(3); // -
    write(4, "abc", table[argc & 1](0)); // +
    printf("%g %s", x, argv[0]); // -
    return 0;
}
""",
    "callbacks of the C library": """\
static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b; // +
}
int main(void)
{
    int values[3] = {3, 1, 2}; // +
    qsort(values, 3, sizeof *values, compare); // +
    write(4, values, sizeof values); // +
    return 0;
}
""",
    "an exit in a function": """\
static void check(double x)
{
    if (x < 0) { // +
        fprintf(stderr, "negative\\n"); // -
        exit(1); // +
    }
}
static void show(double x) { printf("%g", x); } // -
int main(int argc, char **argv)
{
    double x = argc; // +
    check(x); // +
    show(x); // -
    write(4, argv[0], 1); // +
    return 0;
}
""",
    "a return value that nobody uses": """\
static double save(const char *data, int n)
{
    double sum = 0; // -
    for (int i = 0; i < n; i++) // -
        sum += data[i]; // -
    write(4, data, n); // +
    return sum; // -
}
int main(void)
{
    double sum = save("abc", 3); // +
    printf("%g", sum); // -
    return 0;
}
""",
    "macros are atomic": """\
#define TRY(x) do { if ((x) < 0) { fprintf(stderr, "failed\\n"); return 1; } } while (0)
#define LOOP(i, n) for (int i = 0; i < (n); i++)
#define BOTH(a, b) a = 1; b = 2
int main(void)
{
    int n, m;
    double waste = 0;
    BOTH(n, m); // +
    LOOP(i, m) { // +
        TRY(write(4, "abc", n)); // +
        waste += i; // -
    }
    LOOP(j, n) // -
        waste += j; // -
    printf("%g", waste); // -
    return 0;
}
""",
    "jumps inside macros": """\
#define TRY(x) do { if ((x) < 0) { fprintf(stderr, "failed\\n"); goto cleanup; } } while (0)
#define AGAIN(x) if ((x) < 0) goto again
int main(void)
{
    int size = 1, tries = 0, unused = 0;
    char *data = NULL; // +
again:
    size++; // +
    if (tries++ > 5) // +
        return 2; // +
    AGAIN(lseek(4, 0, SEEK_SET)); // +
    data = malloc(size * 10); // +
    TRY(data == NULL ? -1 : 0); // +
    size = 20; // -
    TRY(write(4, "x", 1)); // +
    size = 30; // -
    unused = size; // -
    TRY(write(4, "abc", 3)); // +
    size = 40; // -
    size = unused; // -
cleanup:
    size = 50; // -
    free(data); // +
    return 0;
}
""",
    "the value of a variable where a macro jumps to": """\
#define TRY(x) do { if ((x) < 0) goto cleanup; } while (0)
int main(void)
{
    int size = 1; // +
    TRY(lseek(4, 0, SEEK_SET)); // +
    size = 2; // +
    TRY(lseek(4, 1, SEEK_SET)); // +
    size = 3; // +
cleanup:
    write(4, "abc", size); // +
    return 0;
}
""",
    "one type of struct used as another": """\
struct shape { int kind; };
struct circle { int kind; double radius; };
int main(void)
{
    struct circle *circle = malloc(sizeof *circle); // +
    void *list[1] = {circle}; // +
    circle->kind = 3; // +
    struct shape *shape = list[0]; // +
    write(4, "abc", shape->kind); // +
    free(circle); // +
    return 0;
}
""",
    "data behind the pointers in a struct": """\
#include <getopt.h>
#include <sys/uio.h>
int main(int argc, char **argv)
{
    int all = 0; // +
    struct option known[] = {{"all", 0, &all, 1}, {0, 0, 0, 0}}; // +
    char data[3] = "abc"; // +
    struct iovec parts[1] = {{data, 3}}; // +
    getopt_long(argc, argv, "", known, NULL); // +
    data[1] = 'x'; // +
    writev(4, parts, all); // +
    return 0;
}
""",
    "arrays as parameters": """\
static void fill(double a[][3], int n)
{
    for (int i = 0; i < n; i++) // +
        a[i][1] = i; // +
}
int main(void)
{
    double m[4][3] = {{0}}, (*rows)[3] = m; // +
    fill(rows, 4); // +
    write(4, m, sizeof m); // +
    return 0;
}
""",
    "standard output that is redirected": """\
int main(void)
{
    freopen("log", "w", stdout); // +
    printf("%g", sin(2)); // +
    return 0;
}
""",
    "fields of structs without a name": """\
struct value { union { struct { int x, y; }; int both[2]; }; int z; };
int main(void)
{
    struct value v = {0}; // +
    v.both[1] = 3; // +
    v.z = 4; // -
    write(4, "abc", v.y); // +
    printf("%d", v.z); // -
    return 0;
}
""",
    "marked regions": """\
int main(void)
{
    double a = 1, b = 2;
    write(4, "abc", 3); // +
#pragma luthier keep
    for (int i = 0; i < 3; i++) { // +
        a += i; // +
    }
    b += 2; // -
    return 0;
}
""",
    "cut: the content is not computed": """\
int main(int argc, char **argv)
{
    int n = 100 * argc; // +
    double *data = malloc(n * sizeof *data); // +
    for (int i = 0; i < n; i++) // -
        data[i] = sin(i); // -
    write(4, data, n * sizeof *data); // +
    free(data); // +
    return argv == NULL;
}
""",
    "cut: memory of a function that allocates is told apart": """\
static void *reserve(size_t size)
{
    void *memory = malloc(size); // +
    if (memory == NULL) { // +
        fprintf(stderr, "no memory\\n"); // -
        exit(1); // +
    }
    return memory; // +
}
int main(int argc, char **argv)
{
    int *sizes = reserve(2 * sizeof *sizes); // +
    double *data = reserve(100 * sizeof *data); // +
    double *other = reserve(argc); // +
    sizes[0] = 10 * argc; // +
    other[0] = argc; // -
    data[0] = argc; // -
    write(4, data, sizes[0]); // +
    free(sizes); // +
    free(data); // +
    free(other); // +
    return argv == NULL;
}
""",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rule_with_functions(name: str, tmp_path: Path) -> None:
    check(tmp_path, FUNCTIONS[name], CUT if name.startswith("cut") else None)


UNCUT = {
    "values decide how often is written": """\
    double *data = malloc(80); // +
    data[0] = sin(argc); // +
    write(4, data, 80); // +
    if (data[0] > 0) // +
        write(4, data, 80); // +
""",
    "values decide a size": """\
    int *data = malloc(80); // +
    data[0] = 3; // +
    write(4, data, data[0]); // +
""",
    "pointers in the buffer": """\
    char **data = malloc(80); // +
    data[0] = argv[0]; // +
    write(4, data, 80); // +
""",
    "an allocation that cannot be filled": """\
    char *data = NULL; // +
    data = realloc(data, 80); // +
    data[0] = 1; // +
    write(4, data, 80); // +
""",
    "a static array": """\
    static char data[80]; // +
    data[0] = 1; // +
    write(4, data, 80); // +
""",
}


@pytest.mark.parametrize("name", UNCUT)
def test_cut_is_refused(name: str, tmp_path: Path) -> None:
    check(tmp_path, UNCUT[name], CUT)
    found = discovered(tmp_path, CUT, program=(tmp_path / "program.c").read_text())
    assert any("content kept" in note for note in found.notes)


def test_cut_fills_after_allocation(tmp_path: Path) -> None:
    body = """\
    char line[200], *heap, *zero;
    int n = argc * 9;
    if ((heap = (char *)malloc(n + 1)) == NULL)
        return 1;
    if (n) zero = calloc(n, 2);
    heap[3] = 1; line[2] = 1; zero[1] = 1;
    write(4, heap, n);
    write(4, line, 200);
    write(4, zero, n);
"""
    left = kernel(tmp_path, body, CUT)
    assert "    if (heap)\n        memset(heap, 63, n + 1);" in left
    assert "memset(&line, 63, sizeof line);" in left
    assert "memset(zero, 63, (n) * (2));" in left
    assert "heap[3]" not in left


def test_cut_fills_what_may_be_read_from_a_file(tmp_path: Path) -> None:
    """An untouched buffer would move its page faults into the first write."""
    body = """\
    char *data = malloc(9000);
    if (access("restart", R_OK) == 0)
        read(open("restart", O_RDONLY), data, 9000);
    else
        for (int i = 0; i < 9000; i++)
            data[i] = i * argc;
    write(4, data, 9000);
"""
    left = kernel(tmp_path, body, CUT)
    assert "memset(data, 63, 9000);" in left
    assert "data[i]" not in left


def test_pragmas_go_with_their_statement(tmp_path: Path) -> None:
    body = """\
    double a = 0, b[9], c;
    int n = 9;
    #pragma omp parallel for \\
        reduction(+:a)
    for (int i = 0; i < n; i++) a += i;
    #pragma omp parallel for private(c)
    for (int i = 0; i < n; i++) b[i] = i;
    #pragma omp barrier
    a = 2;
    write(4, b, sizeof b);
"""
    left = kernel(tmp_path, body)
    assert "reduction" not in left
    assert "    #pragma omp parallel for private(c)\n    for (int i = 0; i < n; i++) b[i] = i;\n" in left
    assert "#pragma omp barrier\n    write(4" in left


def test_several_files_and_headers(tmp_path: Path) -> None:
    header = "struct s { int n; double x; };\nvoid save(struct s *s);\nvoid step(struct s *s);\nextern int count;\n"
    main = '#include "all.h"\nint main(void) { struct s s = {3, 0}; step(&s); save(&s); return 0; }\n'
    step = '#include "all.h"\nint count;\nvoid step(struct s *s)\n{\n    s->n++;\n    s->x += 1;\n    count += 2;\n}\n'
    save = '#include <unistd.h>\n#include "all.h"\nvoid save(struct s *s)\n{\n    write(4, "abc", s->n + count);\n}\n'
    found = discovered(tmp_path, all_h=header, main=main, step=step, save=save)
    texts = {Path(file.path).name: file.text for file in found.files}
    assert "s->n++;" in texts["step.c"]
    assert "count += 2;" in texts["step.c"]
    assert "s->x" not in texts["step.c"]
    assert [Path(name).name for name in found.headers] == ["all.h"]


def test_places_in_the_source_that_are_written(tmp_path: Path) -> None:
    """__LINE__ and __FILE__ are those of the source: they may be written to a log."""
    text = """\
#include <stdio.h>
#include "log.h"
int main(int argc, char **argv)
{
    double waste = argc;
    FILE *file = fopen(argv[1], "w");
    waste += 1;
    waste += 2; LOG("a");
    if (argc > 9) /* a comment
        of two lines */
        waste += 3;
    LOG("b");


    for (int i = 0; i < 2; i++) {
        waste += i;

        LOG("c");
    }
    printf("%g", waste);
    return fclose(file);
}
"""
    header = '#define LOG(x) \\\n    fprintf(file, "%s:%d: %s\\n", __FILE__, __LINE__, x)\n'
    found = discovered(tmp_path, program=text, log_h=header)
    assert "waste" not in found.files[0].text
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "program.c").write_text(found.files[0].text)
    for source, output in (("program.c", "whole"), ("kernel/program.c", "left")):
        words = ["cc", "-I.", str(tmp_path / source), "-o", str(tmp_path / "a.out")]
        subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
        subprocess.run(
            [str(tmp_path / "a.out"), output], cwd=tmp_path, check=True, timeout=60, stdout=subprocess.DEVNULL
        )
    written = (tmp_path / "whole").read_text()
    assert written.count("\n") == 4
    assert (tmp_path / "left").read_text() == written


def test_static_names_of_two_files_are_not_mixed(tmp_path: Path) -> None:
    one = "#include <unistd.h>\nstatic int n;\nvoid other(void);\nint main(void)\n{\n    n = 1;\n    other();\n"
    one += '    return write(4, "abc", n);\n}\n'
    two = "static int n;\nvoid other(void)\n{\n    n = 2;\n}\n"
    found = discovered(tmp_path, one=one, two=two)
    assert "other();" not in found.files[0].text
    assert "n = 2" not in found.files[1].text


def test_a_function_of_a_header_is_kept_whole(tmp_path: Path) -> None:
    header = "static inline int twice(int n)\n{\n    int m = 2;\n    m += 1;\n    return 2 * n;\n}\n"
    main = '#include <unistd.h>\n#include "a.h"\nint main(void) { write(4, "abc", twice(1)); return 0; }\n'
    assert "twice(1)" in discovered(tmp_path, a_h=header, main=main).files[0].text


def test_unknown_functions_are_kept_unless_excluded(tmp_path: Path) -> None:
    body = """\
void other_store(double x);
int main(void)
{
    double x = sin(2);
    other_store(x);
    write(4, "abc", 3);
    return 0;
}
"""
    assert "x = sin(2)" in kernel(tmp_path, body)
    assert "sin(2)" not in kernel(tmp_path, body, KernelOptions(compute_calls=("other_*",)))
    found = discovered(tmp_path, program=(tmp_path / "program.c").read_text())
    assert any("other_store is not defined in the sources and may do I/O" in note for note in found.notes)


def test_failures_can_be_dropped(tmp_path: Path) -> None:
    body = '    double x = sin(argc);\n    if (x > 2)\n        abort();\n    write(4, "abc", 3);'
    assert "x = sin" in kernel(tmp_path, body)
    assert "x = sin" not in kernel(tmp_path, body, KernelOptions(failures="drop"))


def test_comments_stay_with_kept_code(tmp_path: Path) -> None:
    body = """\
    double a = 1; /* dropped with its line */
    /* about the sum */
    a += 2;

    /* about the write */
    write(4, "abc", 3); // here
"""
    left = kernel(tmp_path, body)
    assert '/* about the write */\n    write(4, "abc", 3); // here' in left
    assert "about the sum" not in left
    assert "dropped with its line" not in left
