#ifndef SBB_CONTROL_H
#define SBB_CONTROL_H

/* Ask a running daemon for "status", "drain" or "stop"; returns the exit code. */
int control(const char *action);

#endif
