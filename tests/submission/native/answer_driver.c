/* What the C program thinks of names and values, and of whole answers: one line of hexadecimal texts each.
 *
 *     v NAME VALUE      prints 1 if it may be set
 *     a ANSWER          prints 1 if all its lines are allowed
 */
#include <stdio.h>
#include <string.h>

#include "answer.h"

static size_t text(const char *word, char *bytes)
{
    size_t length = strcspn(word, " \n") / 2;
    for (size_t i = 0; i < length; i++) {
        unsigned int byte;
        sscanf(word + 2 * i, "%2x", &byte);
        bytes[i] = (char)byte;
    }
    return length;
}

int main(void)
{
    static char line[100000], first[50000], second[50000];

    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *word = line + 2, *next = word + strcspn(word, " \n");
        size_t length = text(word, first);
        if (line[0] == 'v')
            puts(may_set(first, length, second, text(next + 1, second)) ? "1" : "0");
        else
            puts(is_allowed(first, length) ? "1" : "0");
    }
    return 0;
}
