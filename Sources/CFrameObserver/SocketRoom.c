// libcurl 7.88.0 to 8.0.1 gathers frames of less than 1 KiB in a buffer of its own (`send_callback` in
// lib/http2.c), and tells nghttp2 that they are sent. When the socket then has no room for the buffer, three
// things go wrong:
//
// - A transfer that only receives fails with CURLE_SEND_ERROR (`h2_process_pending_input`).
// - A transfer that sends takes a part of its request for unsent that nghttp2 has taken (`cf_h2_send`). It
//   passes the part again.
// - The buffer moves when it grows, which OpenSSL by default refuses (`OpenSSL.acceptMovedWrites`).
//
// So the function `sends` lets libcurl have such a frame only if the socket has room for it. Otherwise nghttp2
// keeps the frame, as it keeps large frames, until the socket has room.
#define _GNU_SOURCE
#include "SocketRoom.h"
#include "Interposed.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

// libcurl gathers frames that are shorter than this number of bytes. It writes longer frames at once.
enum { least_direct = 1024 };
// What the kernel and TLS may need for a small write besides its bytes, in bytes.
enum { overhead = 2048 };

// The functions that `netopt_watch_room` was given on this thread; NULL before.
static _Thread_local int (*socket_of)(const void *session);
static _Thread_local void (*held_by)(const void *session);
// Whether a session of this thread has kept a frame since the last `netopt_take_held`.
static _Thread_local int has_held;

// The least size of a send buffer whose room netopt remembers from one call of nghttp2_session_send to the next.
// In a smaller one, what the kernel needs besides the bytes counts too much. Linux's usual buffers are larger once
// the connection is open.
enum { least_remembered = 64 * 1024 };

// A session with its socket. room: the number of bytes for which the socket had room when it was last asked,
// without those that were sent since. is_small: whether the send buffer is smaller than `least_remembered`.
struct known_room {
  const void *session;
  int socket;
  long room;
  int is_small;
};
enum { slots = 64 };
// Some sessions of this thread. A session that is not there takes the place of another one; the only cost is a
// further call of `socket_of`.
static _Thread_local struct known_room known_rooms[slots];
// Whether poll(2) tells how much room is left. Set when nghttp2_session_send begins. Cleared when a session has
// passed a small frame: libcurl writes the frame only later, so the kernel does not count it yet.
static _Thread_local int room_is_known;

// Whether only frames that end a stream may pass in the present call of nghttp2_session_send: libcurl does not
// write what it gathers in this call (`http2_data_done`).
static _Thread_local int only_resets;

static struct known_room *slot_of(const void *session) {
  return &known_rooms[((uintptr_t)session >> 6) % slots];
}

// Returns the session's entry; NULL if its socket is unknown.
static struct known_room *entry_of(const void *session) {
  struct known_room *entry = slot_of(session);
  if (entry->session == session) return entry;
  int socket = socket_of(session);
  if (socket < 0) return NULL;
  *entry = (struct known_room){session, socket, 0, 0};
  return entry;
}

// Asks the kernel how many bytes a socket takes at once. It reports room when at least a third of the send buffer
// is free (sk_stream_is_writeable).
static void ask(struct known_room *entry) {
  struct pollfd events = {.fd = entry->socket, .events = POLLOUT};
  int buffer = 0;
  socklen_t size = sizeof buffer;
  entry->room = 0;
  // A failed socket takes the frame, so that libcurl sees the failure.
  if (poll(&events, 1, 0) == 0) return;
  getsockopt(entry->socket, SOL_SOCKET, SO_SNDBUF, &buffer, &size);
  entry->is_small = buffer < least_remembered;
  entry->room = buffer < 3 ? 1 : buffer / 3;
}

// Whether a small frame may be passed to libcurl now.
static int has_room(const void *session, size_t count) {
  struct known_room *entry = entry_of(session);
  // Nothing was requested on the connection yet. The first frames of a connection are short.
  if (!entry) return 1;
  long need = (long)count + overhead;
  if (entry->room < need) {
    if (!room_is_known) return 0;
    ask(entry);
    if (!entry->room) return 0;
  }
  room_is_known = 0;
  entry->room = entry->room > need ? entry->room - need : 0;
  return 1;
}

// The first callback with which libcurl writes frames. Only this one is replaced.
static _Atomic(nghttp2_send_callback) original_send;

// Whether libcurl may have a small frame now. libcurl may gather a frame that ends a stream and write it later:
// nobody waits for it. But it needs room too: when it cannot be written later, the next transfer that receives
// fails. The type of a frame is in its fourth byte (RFC 9113, section 4.1). nghttp2 always passes whole frames,
// because OpenSSL takes a frame whole or not at all.
static int may_pass(const void *session, const uint8_t *bytes, size_t count) {
  if (only_resets && (count < 4 || bytes[3] != NGHTTP2_RST_STREAM)) return 0;
  return has_room(session, count);
}

// nghttp2 calls this to write frames, in place of `original_send`.
static ssize_t sends(nghttp2_session *session, const uint8_t *bytes, size_t count, int flags, void *data) {
  if (socket_of && count < least_direct && !may_pass(session, bytes, count)) {
    has_held = 1;
    held_by(session);
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  // A long frame may use up the room.
  if (count >= least_direct && slot_of(session)->session == session) slot_of(session)->room = 0;
  return atomic_load(&original_send)(session, bytes, count, flags, data);
}

INTERPOSED void nghttp2_session_callbacks_set_send_callback(
    nghttp2_session_callbacks *callbacks, nghttp2_send_callback original) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, nghttp2_send_callback) = next(__func__, &known);
  nghttp2_send_callback first = NULL;
  int is_first = socket_of && original &&
      (atomic_compare_exchange_strong(&original_send, &first, original) || first == original);
  set(callbacks, is_first ? sends : original);
}

// libcurl calls this to let a session send. Before, it has written what it had gathered, or has found no room, or
// has ended streams (`only_resets`).
INTERPOSED int nghttp2_session_send(nghttp2_session *session) {
  static _Atomic(void *) known;
  int (*send)(nghttp2_session *) = next(__func__, &known);
  room_is_known = 1;
  struct known_room *entry = slot_of(session);
  if (entry->session == session && entry->is_small) entry->room = 0;
  int result = send(session);
  only_resets = 0;
  return result;
}

void netopt_next_send_ends_streams(void) { only_resets = socket_of != NULL; }

int netopt_take_held(void) {
  int result = has_held;
  has_held = 0;
  return result;
}

void netopt_watch_room(int (*socket)(const void *session), void (*held)(const void *session)) {
  socket_of = socket;
  held_by = held;
}

void netopt_forget_room(const void *session) {
  struct known_room *entry = slot_of(session);
  if (entry->session == session) *entry = (struct known_room){0};
}
