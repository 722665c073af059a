#ifndef SBB_CONNECT_H
#define SBB_CONNECT_H

#include <stdbool.h>

/* A socket that listens on FOLDER/socket or is connected to it; -1 and errno if that fails. */
int sbb_socket(const char *folder, bool listening);

#endif
