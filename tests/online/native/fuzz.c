/* Feeds damaged answers to the reader of the client, which is included to reach it. Usage: fuzz ROUNDS SEED */
#include "luthier_online.c"

static uint64_t state;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static const char *const answers[] = {
    "{\"ok\":true,\"config\":{\"block\":64,\"ratio\":2.5e-1,\"engine\":\"li\\u0062aio\"},\"phase\":\"searching\"}",
    "{\"ok\":true,\"configs\":[{\"block\":8,\"ratio\":0,\"engine\":\"sync\"}],\"value\":-1.5E+3,"
    "\"x\":[[],{},null,\"\\ud83d\\ude00\"]}",
    "{\"ok\":false,\"error\":\"block: 9 is not one of its values\\n\"}",
    "{ \"ok\" : true , \"samples\" : 12345678901234567890123 , \"y\" : {\"a\":{\"b\":[1,2,{\"c\":false}]}} }",
};
static const char bytes[] = "{}[],:\"\\u0019eE+-.truefalsn \t\xc3\x7f\x01";

/* Changes, removes, repeats and cuts; the text keeps its room. */
static void damage(char *line, size_t room)
{
    for (unsigned times = draw(4); times > 0; times--) {
        size_t length = strlen(line), at = length > 0 ? draw((unsigned)length) : 0;
        unsigned how = draw(5);
        if (how == 0 && length > 0)
            line[at] = bytes[draw(sizeof bytes - 1)];
        else if (how == 1 && length > 0)
            memmove(line + at, line + at + 1, length - at);
        else if (how == 2 && length + 2 < room)
            memmove(line + at + 1, line + at, length - at + 1);
        else if (how == 3)
            line[at] = '\0';
        else if (length + 8 < room)
            memset(line + at, "[{9\"\\"[draw(5)], length - at);
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000, accepted = 0;
    int block = 64, engine = 0;
    double ratio = 0.5;
    state = argc > 2 ? (uint64_t)atol(argv[2]) : 1;
    luthier_online *tuning = luthier_open("unix:/nonexistent", "fuzz");
    luthier_quiet(tuning, 1);
    luthier_integer(tuning, "block", &block, 8, 512, 8);
    luthier_real(tuning, "ratio", &ratio, 0, 1, 0);
    luthier_choice(tuning, "engine", &engine, "sync,libaio");
    if (luthier_fingerprint(tuning) == 0)
        return 2;
    for (long i = 0; i < rounds; i++) {
        char *line = malloc(512); /* its own piece of memory, so that a step outside is noticed */
        answer got;
        strcpy(line, answers[draw(4)]);
        damage(line, 512);
        char *exact = copy_text(line, strlen(line));
        reader from = {exact, tuning, ""};
        int readable = read_answer(&from, &got);
        if (readable && (got.config || got.configs)) {
            luthier_put(tuning, tuning->incoming);
            if (block < 8 || block > 512 || block % 8 != 0 || !(ratio >= 0 && ratio <= 1) || engine < 0 || engine > 1) {
                printf("accepted: %s\n", line);
                return 1;
            }
            accepted++;
        }
        free(exact);
        free(line);
    }
    luthier_close(tuning);
    printf("%ld accepted\n", accepted);
    return accepted > 0 && accepted < rounds ? 0 : 3;
}
