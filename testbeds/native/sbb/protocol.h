/* What libsbb.so and sbbd tell each other.
 *
 * The daemon listens on FOLDER/socket (SOCK_SEQPACKET). A connection carries one request at a time. Its first request
 * is SBB_HELLO, which passes an empty memfd; the daemon makes it the slice that the data of writes and reads goes through;
 * the answer passes the shared table of the daemon back. FOLDER/pending exists while data was acknowledged that is not yet
 * in the target: it tells a client whose daemon is gone whether it may use the files directly.
 */
#ifndef SBB_PROTOCOL_H
#define SBB_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

#define SBB_SLICE (1u << 20) /* bytes of data in one request */
#define SBB_SLOTS 65536u     /* files that are known at a time */
#define SBB_DIRECT_BIT 1u    /* in the word of a slot: this file is not buffered at present */
#define SBB_COPY 2u          /* ... and for each copy of data that the daemon holds of the file */

enum sbb_operation {
    SBB_HELLO = 1,
    SBB_REGISTER, /* passes a descriptor; answers file and slot, or an error: the file is not buffered */
    SBB_RELEASE,  /* the file was closed */
    SBB_WRITE,    /* value: where it was written, which an append asks for */
    SBB_READ,     /* value: how many bytes are in the slice */
    SBB_SYNC,     /* acknowledged data survives a loss of power; value: 0 if nothing of it is left in the buffer */
    SBB_FLUSH,    /* everything is in the target, and no copy is kept */
    SBB_DIRECT,   /* the same, and the file is not buffered until everybody has closed it */
    SBB_TRUNCATE, /* set the size to `offset` */
    SBB_TIMES,    /* set the times of the file with this inode (in `file`); value: 0 if the daemon does not hold it */
    SBB_STATUS,   /* the slice receives JSON, value bytes of it */
    SBB_DRAIN,    /* everything of every file is in the target */
    SBB_STOP,     /* drain and end */
};

#define SBB_APPEND 1u /* flag of a write */

struct sbb_request {
    uint32_t operation;
    uint32_t flags;
    uint64_t file;
    uint64_t offset;
    uint64_t length;
    int64_t times[4]; /* seconds and nanoseconds of last access and last change */
};

#define SBB_BYPASS 1u   /* flags of an answer: use the file directly; */
#define SBB_RAM_MODE 2u /* acknowledged data is lost if the daemon dies (in the answer to HELLO) */

struct sbb_answer {
    int32_t error; /* an errno; EBADF: the daemon does not know the file (any more) */
    uint32_t flags;
    uint64_t file;
    uint64_t slot;
    uint64_t value;
    uint64_t instance; /* differs from one start of the daemon to the next */
};

struct sbb_shared {
    _Atomic uint64_t beats; /* changes at least once a second while the daemon is alive */
    _Atomic uint64_t words[SBB_SLOTS];
};

#endif
