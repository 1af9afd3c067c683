/* Keeps servers that listen on every address of the machine to one loopback address.
 *
 * Storm has no setting for the address on which Nimbus, supervisors and workers listen. This library is loaded into
 * the processes of a local cluster (LD_PRELOAD): a TCP socket that would be bound to the wildcard address is bound to
 * the address in LEEWARD_LISTEN. Everything else goes to the C library unchanged. See loopback.py.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*binder)(int, const struct sockaddr *, socklen_t);

static int option(int socket, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(socket, level, name, &value, &size) == 0 ? value : -1;
}

__attribute__((visibility("default"))) int bind(int socket, const struct sockaddr *wanted, socklen_t length) {
    union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } to;
    struct in_addr host;
    const char *listen_on = getenv("LEEWARD_LISTEN");
    binder next;
    *(void **)&next = dlsym(RTLD_NEXT, "bind");
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    if (listen_on == NULL || wanted == NULL || option(socket, SOL_SOCKET, SO_TYPE) != SOCK_STREAM)
        return next(socket, wanted, length);
    if (wanted->sa_family == AF_INET && length == sizeof to.v4) {
        memcpy(&to.v4, wanted, sizeof to.v4);
        if (to.v4.sin_addr.s_addr != htonl(INADDR_ANY))
            return next(socket, wanted, length);
    } else if (wanted->sa_family == AF_INET6 && length == sizeof to.v6) {
        memcpy(&to.v6, wanted, sizeof to.v6);
        if (!IN6_IS_ADDR_UNSPECIFIED(&to.v6.sin6_addr))
            return next(socket, wanted, length);
    } else {
        return next(socket, wanted, length);
    }
    if (inet_pton(AF_INET, listen_on, &host) != 1) { /* better no server than one that everybody can reach */
        errno = EADDRNOTAVAIL;
        return -1;
    }
    if (to.any.sa_family == AF_INET) {
        to.v4.sin_addr = host;
    } else if (option(socket, IPPROTO_IPV6, IPV6_V6ONLY) == 1) {
        to.v6.sin6_addr = in6addr_loopback;
    } else { /* an IPv4 address as IPv6 writes it: the socket serves IPv4 clients */
        memset(&to.v6.sin6_addr, 0, 10);
        memset(&to.v6.sin6_addr.s6_addr[10], 0xff, 2);
        memcpy(&to.v6.sin6_addr.s6_addr[12], &host, sizeof host);
    }
    return next(socket, &to.any, length);
}
