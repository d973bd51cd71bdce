/* Makes one directory tree of a process behave like a failing disk; preloaded by tests.
 *
 * FAULTS_PREFIX names the tree by an absolute path, FAULTS_CONTROLS a file that holds struct
 * controls and is mapped by both sides: what the test writes there counts from the next call on.
 * Everything outside the tree goes through untouched.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The same layout as tests/faults/disk.py has; an errno of 0 is no fault. */
struct controls {
    int64_t room;          /* bytes that writes still take before write_errno */
    int64_t free_bytes;    /* what statvfs reports as free; -1: the truth */
    int64_t writes;        /* counted here: calls that wrote or tried to */
    int64_t syncs;         /* counted here: fsync and fdatasync, directories included */
    int64_t reads;         /* counted here: read, pread, sendfile */
    int64_t good_reads;    /* reads that still succeed before read_errno */
    int32_t write_errno;   /* write, pwrite, writev, pwritev */
    int32_t read_errno;    /* read, pread, sendfile */
    int32_t sync_errno;    /* fsync, fdatasync */
    int32_t change_errno;  /* creating, renaming, removing, truncating */
    int32_t sync_delay_ms; /* how long each fsync takes on top */
};

static struct controls *controls;
static const char *prefix;
static size_t prefix_length;

__attribute__((constructor)) static void start(void) {
    const char *file = getenv("FAULTS_CONTROLS");
    prefix = getenv("FAULTS_PREFIX");
    if (file == NULL || prefix == NULL)
        return;
    prefix_length = strlen(prefix);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *controls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        controls = mapped;
}

static int is_ours(const char *path) {
    return strncmp(path, prefix, prefix_length) == 0
        && (path[prefix_length] == '/' || path[prefix_length] == '\0');
}

static int names_ours(const char *path) {
    return controls != NULL && path != NULL && is_ours(path);
}

static int holds_ours(int fd) {
    char link[40], path[PATH_MAX];
    if (controls == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return is_ours(path);
}

static int fails(int error) {
    if (error != 0)
        errno = error;
    return error != 0;
}

/* How many of `count` bytes may be written; -1 with errno set when none may. */
static ssize_t allowed(int fd, size_t count) {
    if (!holds_ours(fd))
        return (ssize_t)count;
    __atomic_add_fetch(&controls->writes, 1, __ATOMIC_RELAXED);
    if (controls->write_errno == 0 || count == 0)
        return (ssize_t)count;
    if (controls->room <= 0) {
        errno = controls->write_errno;
        return -1;
    }
    size_t taken = (int64_t)count < controls->room ? count : (size_t)controls->room;
    controls->room -= (int64_t)taken;
    return (ssize_t)taken;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t count) {
    REAL(write);
    ssize_t may = allowed(fd, count);
    return may < 0 ? -1 : real(fd, data, (size_t)may);
}

#define PWRITE(name, offset_type)                                                  \
    ssize_t name(int fd, const void *data, size_t count, offset_type offset) {     \
        REAL(name);                                                                \
        ssize_t may = allowed(fd, count);                                          \
        return may < 0 ? -1 : real(fd, data, (size_t)may, offset);                 \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

static size_t total(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += parts[i].iov_len;
    return sum;
}

/* A vector that does not fit is cut to what fits of its first part that is not empty. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    size_t wanted = total(parts, count);
    ssize_t may = allowed(fd, wanted);
    if (may < 0)
        return -1;
    if ((size_t)may == wanted)
        return real(fd, parts, count);
    while (parts->iov_len == 0)
        parts++;
    struct iovec first = *parts;
    if (first.iov_len > (size_t)may)
        first.iov_len = (size_t)may;
    return real(fd, &first, 1);
}

/* CPython calls the second kind, with flags. */
#define PWRITEV(name, parameters, arguments)                                       \
    ssize_t name(int fd, const struct iovec *parts, int count, UNPACK parameters) { \
        REAL(name);                                                                \
        size_t wanted = total(parts, count);                                       \
        ssize_t may = allowed(fd, wanted);                                         \
        if (may < 0)                                                               \
            return -1;                                                             \
        if ((size_t)may == wanted)                                                 \
            return real(fd, parts, count, UNPACK arguments);                       \
        while (parts->iov_len == 0)                                                \
            parts++;                                                               \
        struct iovec first = *parts;                                               \
        if (first.iov_len > (size_t)may)                                           \
            first.iov_len = (size_t)may;                                           \
        return real(fd, &first, 1, UNPACK arguments);                              \
    }
#define UNPACK(...) __VA_ARGS__
PWRITEV(pwritev, (off_t at), (at))
PWRITEV(pwritev64, (off64_t at), (at))
PWRITEV(pwritev2, (off_t at, int flags), (at, flags))
PWRITEV(pwritev64v2, (off64_t at, int flags), (at, flags))

static int reading_fails(int fd) {
    if (!holds_ours(fd))
        return 0;
    __atomic_add_fetch(&controls->reads, 1, __ATOMIC_RELAXED);
    if (controls->read_errno == 0)
        return 0;
    if (controls->good_reads > 0) {
        controls->good_reads--;
        return 0;
    }
    return fails(controls->read_errno);
}

ssize_t read(int fd, void *data, size_t count) {
    REAL(read);
    return reading_fails(fd) ? -1 : real(fd, data, count);
}

#define PREAD(name, offset_type)                                                   \
    ssize_t name(int fd, void *data, size_t count, offset_type offset) {           \
        REAL(name);                                                                \
        return reading_fails(fd) ? -1 : real(fd, data, count, offset);             \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define SENDFILE(name, offset_type)                                                \
    ssize_t name(int out, int in, offset_type *offset, size_t count) {             \
        REAL(name);                                                                \
        return reading_fails(in) ? -1 : real(out, in, offset, count);              \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

static int syncing_fails(int fd) {
    if (!holds_ours(fd))
        return 0;
    __atomic_add_fetch(&controls->syncs, 1, __ATOMIC_RELAXED);
    if (controls->sync_delay_ms > 0) {
        struct timespec left = {controls->sync_delay_ms / 1000,
                                controls->sync_delay_ms % 1000 * 1000000L};
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
            ;
    }
    return fails(controls->sync_errno);
}

int fsync(int fd) {
    REAL(fsync);
    return syncing_fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return syncing_fails(fd) ? -1 : real(fd);
}

static int changing_fails(const char *path) {
    return names_ours(path) && fails(controls->change_errno);
}

#define OPEN(name)                                                                 \
    int name(const char *path, int flags, ...) {                                   \
        REAL(name);                                                                \
        va_list rest;                                                              \
        va_start(rest, flags);                                                     \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;  \
        va_end(rest);                                                              \
        return flags & O_CREAT && changing_fails(path) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return changing_fails(path) ? -1 : real(path, mode);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return changing_fails(to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    return changing_fails(path) ? -1 : real(path);
}

#define FTRUNCATE(name, offset_type)                                               \
    int name(int fd, offset_type size) {                                           \
        REAL(name);                                                                \
        return controls != NULL && controls->change_errno != 0 && holds_ours(fd)   \
            && fails(controls->change_errno) ? -1 : real(fd, size);                \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define STATVFS(name, kind)                                                        \
    int name(const char *path, struct kind *found) {                               \
        REAL(name);                                                                \
        int result = real(path, found);                                            \
        if (result == 0 && names_ours(path) && controls->free_bytes >= 0)          \
            found->f_bfree = found->f_bavail                                       \
                = (fsblkcnt_t)controls->free_bytes / found->f_frsize;              \
        return result;                                                             \
    }
STATVFS(statvfs, statvfs)
STATVFS(statvfs64, statvfs64)
