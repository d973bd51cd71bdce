/* Preloaded into a broker: names under .brokers.test are 127.0.0.1, unless a file of that name lies
 * in $NAMES_AWAY. Then a lookup hangs until the file is gone, as one does that no server answers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".brokers.test"
#define POLL_US 20000

typedef int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    lookup real = (lookup)dlsym(RTLD_NEXT, "getaddrinfo");
    size_t length = node == NULL ? 0 : strlen(node);
    if (length <= strlen(SUFFIX) || strcmp(node + length - strlen(SUFFIX), SUFFIX) != 0)
        return real(node, service, hints, found);
    const char *away = getenv("NAMES_AWAY");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", away == NULL ? "" : away, node);
    while (access(path, F_OK) == 0)
        usleep(POLL_US);
    return real("127.0.0.1", service, hints, found);
}
