"""Random C programs without undefined behaviour that write some of what they compute to two files."""

from random import Random

_HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned u;
struct s { u a, b; u v[4]; u *q; };
#define SWAP(x, y) do { u t_ = (x); (x) = (y); (y) = t_; } while (0)
#define TWICE(x) x += 3; x ^= 5
#define EACH(i, n) for (i = 0; i < (n); i++)
#define CHECK(x) do { if ((x) == 4000000000u) { fclose(out); exit(3); } } while (0)
#define GO(x, there) do { if ((x) > 5) goto there; } while (0)
#define LEAVE(x) if ((x) % 97 == 13) return (x)
static FILE *out;
static u g0 = 1, g1 = 2, g2 = 3, g3 = 4, arr[8], brr[8], *gp = &g0, fuel;
static struct s s0, s1, *sp = &s0;
struct n { struct n *next; u v; };
static struct n pool[6], *head;
static u mat[4][4], grid[2][3][2];
static char text[40];
static void emit(u value) { fprintf(out, "%u\\n", value); }
static u *pick(u *x, u *y, u which) { return which & 1 ? x : y; }
"""
_HEAD += """\
static void fill(u m[][4], u k) { for (u i = 0; i < 4; i++) for (u j = 0; j < 4; j++) m[i][j] = k + i * j; }
static u sum(const u v[], u k) { u t = 0; while (k-- > 0) t += v[k]; return t; }
static u twice(u x) { return 2 * x; }
static u count(u x) { static u calls; calls += x & 3; return calls; }
static u (*table[2])(u) = {twice, count};
static void apply(u (*f)(u), u *x) { *x = f(*x); }
static int cmp(const void *x, const void *y) { return *(const u *)x < *(const u *)y ? -1 : 1; }
static void push(u v) { struct n *at = &pool[v % 6];
    for (struct n *o = head; o; o = o->next) if (o == at) { o->v += v; return; }
    at->v = v; at->next = head; head = at; }
"""
_HEAD += """\
struct rec { double e; u last, more; };
union un { u w; unsigned char c[4]; };
struct box { struct rec in; union un un; u n[3]; };
static FILE *data;
static struct rec r0, rows[3];
static struct box box0 = {{1, 2, 3}, {4}, {5, [2] = 6}};
static struct rec make(u a, u b) { struct rec r = {.more = b, .last = a, .e = 1}; return r; }
static u use(struct rec r) { return r.last; }
static u seen(const void *p, u k) { return ((const unsigned char *)p)[k & 3]; }
static void change(struct rec *r, u *k) { r->last += *k; *k ^= 1; }
"""
_LOCALS = "struct rec r = {1, 2, 3}, q = r; union un v = {7}; struct box t = {.in = r, .n = {a, [2] = b}};"
_OPERATORS = ("+", "-", "*", "^", "|", "&")


class Generator:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.functions = 0
        self.labels = 0
        self.loops = 0
        self.indent = 1
        self.depth = 0
        self.sparse = self.random.random() < 0.7  # few pointers: more can be dropped

    def program(self) -> str:
        """The text."""
        self.lines = [_HEAD]
        for _ in range(self.random.randint(2, 5)):
            self._function()
        self.lines.append("int main(int argc, char **argv)\n{")
        self.lines.append(
            "    u a = (u)atoi(argv[2]), b = 2, c = 3, d = 4, e = 7, h = 8, i = 0, *p = &g1; struct s *s = &s1;"
        )
        self.lines.append(f"    {_LOCALS}")
        self.lines.append('    out = fopen(argv[1], "w"); data = fopen(argv[3], "w"); s0.q = &g2; s1.q = arr;')
        self._block(self.random.randint(8, 16), in_main=True)
        self._add("emit(g0); fclose(out); fclose(data);")
        self._add("return 0;\n}")
        return "\n".join(self.lines) + "\n"

    def _function(self) -> None:
        self.lines.append(f"static u f{self.functions}(u a, u b, u *p, struct s *s)\n{{")
        self.lines.append(f"    u c = 5, d = 6, e = 7, h = 8, i = 0; {_LOCALS}\n    if (fuel++ > 3000) return a;")
        self._block(self.random.randint(4, 9), in_main=False)
        self._add(f"return {self._expression()};\n}}\n")
        self.functions += 1

    def _add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def _pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _target(self) -> str:
        index = self._expression(1)
        if self.sparse and self.random.random() < 0.8:
            return self._pick(
                "a",
                "b",
                "e",
                "h",
                "e",
                "h",
                "c",
                "d",
                "g1",
                f"brr[({index}) & 7]",
                "s0.b",
                "s1.a",
                "s1.v[1]",
                "r.last",
                "t.n[1]",
                "v.w",
                "rows[1].last",
            )
        return self._pick(
            "a", "b", "c", "d", "c", "d", "g0", "g1", "g2", "g3", "*p", "*gp", f"arr[({index}) & 7]",
            f"brr[({index}) & 7]",
            "s->a", "s->b", "sp->a", "s0.b", f"s->v[({index}) & 3]", "*s->q", "s1.a", "*pick(&g3, p, a)",
        )  # fmt: skip

    def _expression(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.35:
            if self.sparse and self.random.random() < 0.8:
                return self._pick(
                    "a", "b", "e", "h", "e", "h", "c", "d", "g1", "brr[3]", "s0.b", "s1.a", "i", "7", "r.last", "v.w"
                )
            return self._pick(
                "a", "b", "c", "d", "g0", "g1", "g2", "g3", "*p", "*gp", "arr[a & 7]", "brr[b & 7]", "s->a", "s->b",
                "sp->b",
                "s0.a", "s1.v[c & 3]", "*sp->q", "i", str(self.random.randint(0, 9)), "(u)sizeof(c)",
                "r.last", "q.more", "t.n[a % 3]", "t.in.last", "v.c[b & 3]", "box0.n[1]", "rows[c % 3].last", "use(r)",
            )  # fmt: skip
        left, right = self._expression(depth - 1), self._expression(depth - 1)
        kind = self.random.random()
        if kind < 0.1:
            return f"({left} > {right} ? {self._expression(depth - 1)} : {right})"
        if kind < 0.15 and self.functions:
            return self._call()
        return f"({left} {self._pick(*_OPERATORS)} {right})"

    def _call(self) -> str:
        number = self.random.randrange(self.functions)
        pointer = self._pick("p", "&g1", "gp", "&arr[3]", "&c", "s->q", "&s->b", "s1.v")
        return (
            f"f{number}({self._expression(1)}, {self._expression(1)}, {pointer}, {self._pick('s', '&s0', '&s1', 'sp')})"
        )

    def _block(self, count: int, *, in_main: bool) -> None:
        self.indent += self.depth > 0
        self.depth += 1
        for _ in range(count):
            self._statement(in_main)
        self.depth -= 1
        self.indent -= self.depth > 0

    def _statement(self, in_main: bool) -> None:
        kinds = [self._assign] * 6 + [
            self._macro,
            self._called,
            self._output,
            self._library,
            self._library,
            self._odd,
            self._odd,
            self._record,
            self._record,
            self._record,
            self._written,
            self._written,
        ]
        if not self.sparse or self.random.random() < 0.2:
            kinds += [self._pointer, self._copy]
        if self.depth < 4:
            kinds += [self._if, self._if, self._for, self._while, self._switch, self._goto, self._do]
        if not in_main:
            kinds += [self._return]
        self.in_main = in_main
        self.random.choice(kinds)()

    def _assign(self) -> None:
        operator = self._pick("=", "=", "=", "+=", "^=")
        text = f"{self._target()} {operator} {self._expression()};"
        self._add(self._pick(text, text, text, f"++{self._target()};", f"c = d = {self._expression()};"))

    def _pointer(self) -> None:
        self._add(
            self._pick(
                "p = &g2;", "p = &brr[a & 7];", "p = gp;", "gp = &g3;", "gp = &arr[b & 7];", "sp = &s1;", "sp = &s0;",
                "s0.q = gp;", "s->q = &brr[2];", "p = pick(gp, &g1, b);", "p = &d;", "p = s->q;", "s = sp;",
                "p = arr; p++;", "p = &s0.a; p = p + 1;" if self.random.random() < 0.2 else "p = &s1.b;",
            )
        )  # fmt: skip

    def _copy(self) -> None:
        self._add(
            self._pick(
                "memcpy(arr, brr, sizeof arr);", "memset(&s1.v, (int)(a & 7), sizeof s1.v);", "s0 = s1;", "*s = s0;",
                "memcpy(&s0, s, sizeof s0);" if self.random.random() < 0.3 else "memmove(brr + 1, brr, 20);",
            )
        )  # fmt: skip

    def _library(self) -> None:
        """Arrays as parameters, lists, strings, pointers to functions."""
        self._add(
            self._pick(
                "fill(mat, c);", "mat[a & 3][b & 3] = d;", "c = mat[1][d & 3];", "g1 = sum(mat[2], 4);",
                "d = sum(arr, 8);",
                "push(c);", "for (struct n *at = head; at; at = at->next) g2 += at->v;", "c = table[a & 1](b);",
                "apply(count, &g1);", "apply(a & 1 ? twice : count, &c);", "qsort(brr, 8, sizeof *brr, cmp);",
                'sprintf(text, "%u", c);', "d = (u)strlen(text);", "g3 = (u)atoi(text);",
                'strcat(strcpy(text, "4"), "2");',
                "grid[a & 1][1][b & 1] = c; d = grid[0][1][1];", "srand(a); c = (u)rand() & 7;", "d = (u)rand() & 3;",
                "{ u (*row)[4] = mat; row[1][2] ^= b; }", "{ u list[3] = {a, b, c}; d = sum(list, 3); }",
                "if (head) { head->v = d; head = head->next; }", "g1 = table[1](g1) + count(1);",
            )
        )  # fmt: skip

    def _odd(self) -> None:
        """Statements without braces, empty ones, and variables that hide others."""
        one, two, value = self._target(), self._target(), self._expression()
        self._add(
            self._pick(
                f"if (a & 1) if (b & 1) {one} = 1; else {two} = {value};",
                f"if (a & 1) {{ if (b & 2) {one} = {value}; }} else {two} = 3;",
                f"for (i = 0;;) {{ if (++i > 3) break; {one} += i; }}",
                "i = 0; while (i < 3) i++;",
                f"if ({value} > 4) ; else {one} = 2;",
                f"{{ u c = {value}; {one} += c; c = 2; }}",
                f"if ({value} == 3) {{ }} else if (a > 2) {one} = 4; else if (b > 3) {{ {two} = 5; }} else c = 6;",
                f"for (i = 0; i < 2; i++) for (u k = 0; k < 2; k++) if (k ^ i) {one} ^= k; else {two} += 2;",
                f"do {one} = {value}; while (0);",
                f"switch (a & 1) case 1: {one} = {value};",
                f"{one} = a, {two} = b; /* both */ c = {value}; // the third",
                f"if (a > 1 && ({one} = {value}) > 2) {two} = 1;",
                f"u w{self.loops} = {value}, z{self.loops} = 2; {one} = w{self.loops} * z{self.loops};",
            )
        )
        self.loops += 1

    def _record(self) -> None:
        """Structs and unions: initialized, copied, passed, returned, and looked at through other types."""
        one, two = self._expression(1), self._expression(1)
        self._add(
            self._pick(
                f"r = make({one}, {two});", "q = r;", "t.in = q;", "r = t.in;", "box0 = t;", "t = box0;", "r0 = q;",
                f"r = (struct rec){{.last = {one}}};", f"t = (struct box){{.in = {{a, {one}}}, .n = {{{two}}}}};",
                "memcpy(&q, &t.in, sizeof q);", "memset(&v, (int)(a & 1), sizeof v);", f"v.c[a & 3] = {one} & 255;",
                f"v = (union un){{.c = {{{one} & 255, 1}}}};", "d = v.w & 255;", "c = seen(&r.e, b);", "d = use(q);",
                "e = seen(&v, a);", f"{{ struct rec *k = &t.in; k->last += {one}; }}", "{ u *k = &r.last; *k ^= 3; }",
                "change(&r, &d);", "change(&t.in, &t.n[2]);", "change(rows + a % 3, &g1);", "d = make(c, b).more;",
                f"rows[{one} % 3] = q;", "memcpy(rows, rows + 1, sizeof *rows);", "if (r.e > 3) d++;",
                f"r.e = {one};", f"{{ u k[2] = {{{one}, {two}}}; memcpy(&q.last, k, sizeof k); }}",
            )
        )  # fmt: skip

    def _written(self) -> None:
        """Objects that are written to the second file, byte by byte; some of their values are used again."""
        one, two, use = self._expression(1), self._expression(1), self._pick("d", "g1", "e", "h")
        again = self._pick(f"{use} = k.last;", f"if (k.last & 1) {use} = 3;", "", "")
        last = self._pick(f"{use} ^= k[b % 3].last;", f"if (k[2].more) {use}++;", "", "")
        word = self._pick(f"{use} += k[b & 7];", f"if (k[1] > 3) {use} = 1;", "", "")
        self.loops += 1
        own = f"struct o{self.loops} {{ double e; u last, more; }}"  # fields of one type are one value to the analysis
        kind = self._pick("struct rec", own, own, own)
        self._add(
            self._pick(
                f"{{ {kind} k = {{{one}, {two} < c}}; fwrite(&k, sizeof k, 1, data); {again} }}",
                f"{{ {kind} k = {{.last = {one}}}, *l = &k; fwrite(l, sizeof *l, 1, data); {again} }}",
                f"{{ struct rec k; k = make({one}, {two}); fwrite(&k, sizeof k, 1, data); {again} }}",
                f"{{ {kind} k; memcpy(&k, &q, sizeof k); k.e = {one}; fwrite(&k, 1, sizeof k, data); {again} }}",
                f"{{ {kind} k[3] = {{{{a, {one}}}, [2] = {{.more = {two}}}}};"
                f" fwrite(k, sizeof k, 1, data); {last} }}",
                f"{{ {kind} *k = calloc(3, 16); if (!k) return 9; k[a % 3].last = {one};"
                f" fwrite(k, sizeof *k, 3, data); {last} free(k); }}",
                f"{{ {kind} *k = malloc(3 * 16); if (!k) return 9; memcpy(k, rows, sizeof rows);"
                f" fwrite(k, sizeof *k, 3, data); {last} free(k); }}",
                f"{{ u k[8] = {{{one}}}; for (u j = 1; j < 8; j++) k[j] = k[j - 1] ^ {two};"
                f" fwrite(k, 4, 8, data); {word} }}",
                f"{{ u *k = malloc(32); if (!k) return 9; for (u j = 0; j < 8; j++) k[j] = j + {one};"
                f" fwrite(k, 4, {two} & 7, data); {word} free(k); }}",
                f"{{ union o{self.loops} {{ u w; unsigned char c[4]; }} k = {{{one}}};"
                f" fwrite(&k, sizeof k, 1, data); {self._pick('', f'{use} += k.c[0];')} }}",
                f"{{ struct o{self.loops} {{ struct rec in; union un un; u n[3]; }}"
                f" k = {{.in = {{{one}}}, .un = {{.c = {{b & 255}}}}}}; fwrite(&k, sizeof k, 1, data);"
                f" {self._pick('', f'if (k.un.w & 1) {use}++;')} }}",
                "fwrite(&r, sizeof r, 1, data);", "fwrite(&t, sizeof t, 1, data);", f"fwrite(&t, {one} & 7, 1, data);",
            )
        )  # fmt: skip

    def _macro(self) -> None:
        self._add(self._pick("SWAP(c, d);", "SWAP(g1, g2);", "TWICE(c);", "TWICE(g3);", "CHECK(a);", "CHECK(*p);"))
        if not self.in_main and self.random.random() < 0.3:
            self._add("LEAVE(c);")

    def _called(self) -> None:
        if self.functions:
            call = self._call()
            self._add(
                self._pick(f"{call};", f"d = {call};", f"(void){call};", f"g2 = {call};", f"if ({call} == 7) c++;")
            )

    def _output(self) -> None:
        if self.random.random() < (0.25 if self.sparse else 0.5):
            self._add(f"emit({self._pick('a', 'c', 'e', 'h', 'g1', 's->a', 'arr[1]', '*p')});")

    def _braced(self, count: int) -> None:
        in_main = self.in_main
        self._block(count, in_main=in_main)
        self.in_main = in_main

    def _if(self) -> None:
        condition = f"{self._expression()} {self._pick('<', '==', '>')} {self._expression()}"
        if self.random.random() < 0.3:
            self._add(f"if ({condition})")
            self._add(f"    {self._target()} = {self._expression()};")
            if self.random.random() < 0.5:
                self._add("else")
                self._add(f"    {self._target()} = {self._expression()};")
            return
        self._add(f"if ({condition}) {{")
        self._braced(self.random.randint(1, 3))
        if self.random.random() < 0.5:
            self._add("} else {")
            self._braced(self.random.randint(1, 3))
        self._add("}")

    def _loop_name(self) -> str:
        self.loops += 1
        return f"n{self.loops}"

    def _exits(self) -> None:
        if self.random.random() < 0.4:
            self._add(f"    if ({self._expression()} % 5 == 1) {self._pick('break', 'continue')};")

    def _for(self) -> None:
        name = self._loop_name()
        if self.random.random() < 0.25:
            self._add(f"{{ u {name}; EACH({name}, 3) {{")
        else:
            self._add(f"{{ for (u {name} = 0; {name} < {self.random.randint(1, 4)}; {name}++) {{")
        self._braced(self.random.randint(1, 3))
        self._exits()
        self._add("} }")

    def _while(self) -> None:
        name = self._loop_name()
        self._add(f"u {name} = 0;")
        self._add(f"while ({name}++ < 4 && {self._expression()} != 3) {{")
        self._braced(self.random.randint(1, 2))
        self._exits()
        self._add("}")

    def _do(self) -> None:
        self._add("i = 0;")
        name = self._loop_name()
        self._add(f"{{ u {name} = 0; do {{")
        self._braced(1)
        self._exits()
        self._add(f"}} while (++{name} < 3 && ++i < 5); }}")

    def _switch(self) -> None:
        self._add(f"switch (({self._expression()}) % 4) {{")
        for case in range(self.random.randint(1, 3)):
            self._add(f"case {case}:")
            self._add(f"    {self._target()} = {self._expression()};")
            if self.random.random() < 0.6:
                self._add("    break;")
        self._add("default:")
        self._add(f"    {self._target()} += 1;")
        self._add("}")

    def _goto(self) -> None:
        self.labels += 1
        label = f"l{self.labels}"
        jump = self._pick("if ({} > 5) goto {};", "GO({}, {});")
        self._add(jump.format(self._expression(), label))
        self._add(f"{self._target()} = {self._expression()};")
        self._add(f"{label}: {self._target()} ^= 1;")

    def _return(self) -> None:
        self._add(f"if ({self._expression()} == 11) return {self._expression()};")


def program(seed: int) -> str:
    """A program that takes the names of two output files and, between them, a number."""
    return Generator(seed).program()
