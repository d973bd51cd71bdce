/* Preloaded into a broker: names under .brokers.test are 127.0.0.1, or what is in the file of that name
 * with .at in $NAMES_AWAY. While a file of the name itself lies there, a lookup hangs, as one does that
 * no server answers. */
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
    snprintf(path, sizeof path - sizeof ".at", "%s/%s", away == NULL ? "" : away, node);
    while (access(path, F_OK) == 0)
        usleep(POLL_US);
    char address[64] = "127.0.0.1";
    strcat(path, ".at");
    FILE *at = fopen(path, "r");
    if (at != NULL) {
        if (fscanf(at, "%63s", address) != 1)
            abort();
        fclose(at);
    }
    return real(address, service, hints, found);
}
