/* The format of the log on flash. */
#ifndef SBB_LOG_H
#define SBB_LOG_H

#include "crc.h"
#include "sbbd.h"

#define LOG_ALIGN 512u
#define LOG_MAGIC UINT64_C(0x31676f6c2d626273)     /* "sbb-log1" */
#define SEGMENT_MAGIC UINT64_C(0x316765732d626273) /* "sbb-seg1" */
#define LOG_DONE 0x656e6f64u                       /* "done" */

struct segment_header {
    uint64_t magic, instance, number;
};

struct log_header {
    uint64_t magic, instance, segment, place, sequence, inode;
    int64_t born_ns;
    uint64_t offset;
    uint32_t length, path_length, data_crc;
    uint32_t crc;  /* of everything before it and of the path */
    uint32_t done; /* LOG_DONE once the data is in the target */
    uint32_t unused;
};

static inline uint32_t log_header_crc(const struct log_header *header, const char *path)
{
    return crc32c(crc32c(0, header, offsetof(struct log_header, crc)), path, header->path_length);
}

#endif
