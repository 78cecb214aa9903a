// A relay of TCP connections that behaves like a long way: `relay ADDRESS PORT DELAY_MS BYTES_A_SECOND CUT_PERCENT`.
//
// It listens on 127.0.0.1, connects to ADDRESS:PORT, and prints its own port. Each byte arrives half of DELAY_MS
// later, the first ones of a client a whole DELAY_MS later still, because a connection takes a round trip to be set up.
// Each connection brings at most BYTES_A_SECOND from the server. CUT_PERCENT of the connections end after a random
// number of bytes, at most four million. The window of TCP is as large as the way needs, and there is no slow start.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 32 << 10, MOST_PIECES = 1 << 12 };

static int64_t delay, rate, cuts;
static struct sockaddr_in target;

struct piece {
  int64_t due;
  int length;
  char *bytes;
};

// One direction of a connection.
struct way {
  int from, to;
  // In nanoseconds: the first byte is due then at the earliest.
  int64_t ready;
  // In bytes a second; 0 for any.
  int64_t rate;
  // Ends the connection after so many bytes; 0 for never.
  int64_t until;
  struct connection *connection;
};

struct connection {
  int client, server;
  struct way there, back;
  pthread_mutex_t lock;
  int ways;
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Sends all of it; false if the other side is gone.
static int send_all(int to, const char *bytes, int length) {
  while (length > 0) {
    ssize_t sent = send(to, bytes, length, MSG_NOSIGNAL);
    if (sent < 0) return 0;
    bytes += sent;
    length -= sent;
  }
  return 1;
}

static void *carry(void *argument) {
  struct way *way = argument;
  // As many bytes on the way as the rate and the delay give, and a little more.
  int64_t window = way->rate ? way->rate * delay / 1000000000LL + 8 * PIECE : 64 * PIECE;
  static __thread struct piece pieces[MOST_PIECES];
  unsigned first = 0, next = 0;
  int64_t under_way = 0, free_at = 0, sent = 0;
  int is_open = 1, is_broken = 0;
  while (is_open || first != next) {
    int64_t time = now();
    while (first != next && pieces[first % MOST_PIECES].due <= time) {
      struct piece piece = pieces[first++ % MOST_PIECES];
      is_broken = !send_all(way->to, piece.bytes, piece.length);
      free(piece.bytes);
      under_way -= piece.length;
      sent += piece.length;
      if (is_broken || (way->until && sent >= way->until)) goto end;
    }
    int has_room = is_open && under_way < window && next - first < MOST_PIECES;
    struct pollfd polled = {.fd = has_room ? way->from : -1, .events = POLLIN};
    struct timespec wait = {.tv_sec = 60};
    if (first != next) {
      int64_t left = pieces[first % MOST_PIECES].due - now();
      if (left < 0) left = 0;
      wait = (struct timespec){.tv_sec = left / 1000000000LL, .tv_nsec = left % 1000000000LL};
    }
    if (ppoll(&polled, 1, &wait, NULL) < 0 && errno != EINTR) break;
    if (!has_room || !polled.revents) continue;
    char *bytes = malloc(PIECE);
    ssize_t count = recv(way->from, bytes, PIECE, 0);
    if (count <= 0) {
      free(bytes);
      is_open = 0;
      continue;
    }
    int64_t start = now();
    if (start < way->ready) start = way->ready;
    if (start < free_at) start = free_at;
    free_at = start + (way->rate ? count * 1000000000LL / way->rate : 0);
    pieces[next++ % MOST_PIECES] = (struct piece){free_at + delay / 2, count, bytes};
    under_way += count;
  }
end:
  while (first != next) free(pieces[first++ % MOST_PIECES].bytes);
  shutdown(way->to, SHUT_WR);
  if (is_broken || (way->until && sent >= way->until)) {
    shutdown(way->from, SHUT_RDWR);
    shutdown(way->to, SHUT_RDWR);
  }
  struct connection *connection = way->connection;
  pthread_mutex_lock(&connection->lock);
  int left = --connection->ways;
  pthread_mutex_unlock(&connection->lock);
  if (left == 0) {
    close(connection->client);
    close(connection->server);
    free(connection);
  }
  return NULL;
}

static void serve(int client) {
  struct connection *connection = calloc(1, sizeof *connection);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (connect(server, (struct sockaddr *)&target, sizeof target) < 0) {
    close(server);
    close(client);
    free(connection);
    return;
  }
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  int64_t until = rand() % 100 < cuts ? 1 + rand() % 4000000 : 0;
  pthread_mutex_init(&connection->lock, NULL);
  connection->client = client;
  connection->server = server;
  connection->ways = 2;
  connection->there = (struct way){client, server, now() + delay, 0, 0, connection};
  connection->back = (struct way){server, client, 0, rate, until, connection};
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_create(&thread, &attributes, carry, &connection->there);
  pthread_create(&thread, &attributes, carry, &connection->back);
  pthread_attr_destroy(&attributes);
}

int main(int count, char **arguments) {
  if (count == 6) target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(arguments[2]))};
  if (count != 6 || !inet_aton(arguments[1], &target.sin_addr)) {
    fprintf(stderr, "usage: relay ADDRESS PORT DELAY_MS BYTES_A_SECOND CUT_PERCENT\n");
    return 64;
  }
  delay = atof(arguments[3]) * 1000000;
  rate = atoll(arguments[4]);
  cuts = atoll(arguments[5]);
  // The same connections are cut in each run.
  srand(1);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in own = {.sin_family = AF_INET};
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  if (bind(listener, (struct sockaddr *)&own, length) < 0 || listen(listener, 1024) < 0
      || getsockname(listener, (struct sockaddr *)&own, &length) < 0) {
    perror("relay");
    return 1;
  }
  printf("%d\n", ntohs(own.sin_port));
  fflush(stdout);
  for (;;) {
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client >= 0) serve(client);
  }
}
