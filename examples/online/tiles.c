/* A matrix multiplication whose tile size and loop order are tuned while it runs.
 *
 *     luthier online --install-client ~/luthier-client
 *     export PKG_CONFIG_PATH=~/luthier-client/lib/pkgconfig
 *     cc -O2 tiles.c $(pkg-config --cflags --libs luthier-online) -o tiles
 *     luthier online &
 *     ./tiles 200
 *
 * Without a service it runs with the tile size and the order below. */
#include <stdio.h>
#include <stdlib.h>

#include "luthier_online.h"

enum { N = 96 };
static double a[N][N], b[N][N], c[N][N];

static int lower(int left, int right)
{
    return left < right ? left : right;
}

static void multiply(int tile, int order)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            c[i][j] = 0;
    for (int first = 0; first < N; first += tile)
        for (int second = 0; second < N; second += tile)
            for (int i = 0; i < N; i++)
                for (int x = first; x < lower(first + tile, N); x++)
                    for (int y = second; y < lower(second + tile, N); y++) {
                        int j = order == 0 ? x : y, k = order == 0 ? y : x;
                        c[i][j] += a[i][k] * b[k][j];
                    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100, tile = 4, order = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i + 2 * j) % 7;
            b[i][j] = (3 * i + j) % 5;
        }
    luthier_online *tuning = luthier_open(NULL, "tiles");
    luthier_integer(tuning, "tile", &tile, 4, 96, 4);
    luthier_choice(tuning, "order", &order, "columns,rows");
    for (int step = 0; step < steps; step++) {
        luthier_begin(tuning);
        multiply(tile, order);
        luthier_end(tuning);
    }
    luthier_best(tuning);
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += c[i][j];
    printf("sum %.0f, tile %d, order %d, %s\n", sum, tile, order, luthier_phase(tuning));
    luthier_close(tuning);
    return 0;
}
