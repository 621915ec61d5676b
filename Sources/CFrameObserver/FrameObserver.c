// RTLD_NEXT of dlsym(3).
#define _GNU_SOURCE
#include "FrameObserver.h"

#include <dlfcn.h>
#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef nghttp2_on_frame_recv_callback callback;

static _Thread_local struct netopt_frame_handlers handlers;
// Whether this thread has asked for what is done here.
static _Thread_local int is_ours;
static _Thread_local int is_observed;
static _Thread_local int misses_requests;
// Whether a stream of this thread has ever ended before its request: only of those is it told that they are closed.
static _Thread_local int has_early_ends;

// Some sessions of this thread. A list that is empty has no memory, so that a thread that ends leaves none behind.
struct sessions {
  const void **list;
  int count, room;
};
// Those that nghttp2 gave up or that failed in one call of libcurl.
static _Thread_local struct sessions given_up;
// Those that failed and are not freed yet. There are as many as fail in one turn of the loop.
static _Thread_local struct sessions failed;

static int find(const struct sessions *some, const void *session) {
  for (int place = 0; place < some->count; place++)
    if (some->list[place] == session) return place;
  return -1;
}

static void add(struct sessions *some, const void *session) {
  if (find(some, session) >= 0) return;
  if (some->count == some->room) {
    int room = some->room ? 2 * some->room : 16;
    const void **list = realloc(some->list, (size_t)room * sizeof *list);
    // A session that is not in the list would be read on, in the middle of a frame. Swift ends the process as well when there is no memory.
    if (!list) abort();
    some->list = list;
    some->room = room;
  }
  some->list[some->count++] = session;
}

static void take_out_at(struct sessions *some, int place) {
  some->list[place] = some->list[--some->count];
  if (some->count) return;
  free(some->list);
  some->list = NULL;
  some->room = 0;
}

static void take_out(struct sessions *some, const void *session) {
  int place = find(some, session);
  if (place >= 0) take_out_at(some, place);
}

// The callbacks that libcurl sets, each with a function of ours in its place. There is one, and newer ones have another for proxies.
enum { most_originals = 4 };
static _Atomic(callback) originals[most_originals];

// How many streams the server takes at once, as far as it has said so (RFC 9113, section 5.1.2). Before it has, nghttp2 opens 100.
static uint32_t stream_limit(nghttp2_session *session) {
  return nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

// The head of a frame has come. How much of it is padding stands behind the head.
static int begins(nghttp2_session *session, const nghttp2_frame_hd *head, void *data) {
  (void)data;
  if (!is_ours || head->type != NGHTTP2_DATA) return 0;
  if ((head->flags & (NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_PADDED)) != NGHTTP2_FLAG_END_STREAM) return 0;
  void *easy = nghttp2_session_get_stream_user_data(session, head->stream_id);
  if (easy) handlers.ending(easy, head->length);
  return 0;
}

static void note(nghttp2_session *session, const nghttp2_frame *frame) {
  int is_data = frame->hd.type == NGHTTP2_DATA;
  if (is_data || frame->hd.type == NGHTTP2_HEADERS) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!easy) return;
    enum netopt_end end = netopt_goes_on;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
      end = nghttp2_session_get_stream_local_close(session, frame->hd.stream_id) ? netopt_ends : netopt_ends_early;
    if (end == netopt_ends_early) has_early_ends = 1;
    handlers.received(easy, is_data ? frame->hd.length - frame->data.padlen : 0, end);
  } else if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers.refused(easy, stream_limit(session));
  } else if (frame->hd.type == NGHTTP2_GOAWAY) {
    handlers.leaving(session, frame->goaway.last_stream_id);
  }
}

// Whether a reset is to be kept from libcurl: it asks for no more of a request whose answer has ended (RFC 9113, section 8.1). That the
// stream is closed libcurl hears.
static int is_hidden(nghttp2_session *session, const nghttp2_frame *frame) {
  if (frame->hd.type != NGHTTP2_RST_STREAM || frame->rst_stream.error_code != NGHTTP2_NO_ERROR) return 0;
  void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  return easy && handlers.hides_reset(easy);
}

static int received(int place, nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  // Before libcurl's own callback, and before the stream is closed: nghttp2 then forgets whose it is.
  if (is_ours) {
    note(session, frame);
    if (is_hidden(session, frame)) return 0;
  }
  return atomic_load(&originals[place])(session, frame, data);
}

static int received0(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(0, s, f, d); }
static int received1(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(1, s, f, d); }
static int received2(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(2, s, f, d); }
static int received3(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(3, s, f, d); }
static const callback observers[most_originals] = {received0, received1, received2, received3};

// What stands for a callback; NULL when there are too many.
static callback observer(callback original) {
  for (int place = 0; original && place < most_originals; place++) {
    callback known = NULL;
    if (atomic_compare_exchange_strong(&originals[place], &known, original) || known == original)
      return observers[place];
  }
  return NULL;
}

// What libcurl sets for the end of a stream. Others than the first are left alone.
static _Atomic(nghttp2_on_stream_close_callback) original_close;

static int closed(nghttp2_session *session, int32_t stream, uint32_t error, void *data) {
  // libcurl takes it from the stream.
  void *easy = is_ours && has_early_ends ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
  int result = atomic_load(&original_close)(session, stream, error, data);
  if (easy) handlers.closed(easy);
  return result;
}

// Whether nghttp2 ends a stream with this code because of what came. libcurl itself has it end streams with STREAM_CLOSED and CANCEL.
static int rejects_stream(uint32_t code) {
  return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_FRAME_SIZE_ERROR ||
      code == NGHTTP2_COMPRESSION_ERROR;
}

// The same of a session. INTERNAL_ERROR says that a callback failed.
static int rejects_session(uint32_t code) { return code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR; }

// A frame is about to be written. The stream of a request is open by now.
static int writing(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  (void)data;
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    add(&given_up, session);
    if (is_ours && rejects_session(frame->goaway.error_code))
      handlers.rejected(NULL, session, frame->goaway.error_code);
  } else if (is_ours && frame->hd.type == NGHTTP2_RST_STREAM && rejects_stream(frame->rst_stream.error_code)) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers.rejected(easy, session, frame->rst_stream.error_code);
  } else if (is_ours && frame->hd.type == NGHTTP2_HEADERS) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers.requested(easy, session, frame->hd.stream_id, stream_limit(session));
  }
  return 0;
}

// Each of the following stands before nghttp2's function of its name in the order in which ld.so(8) looks symbols up, so that libcurl calls
// it. Weak, so that a program into which nghttp2 is linked statically still links; nothing is observed then.
#define STANDS_BEFORE __attribute__((weak, visibility("default")))

// nghttp2's own function. It is there, because this module is linked with it.
static void *next(const char *name, _Atomic(void *) *known) {
  void *function = atomic_load(known);
  if (!function) {
    function = dlsym(RTLD_NEXT, name);
    atomic_store(known, function);
  }
  return function;
}

STANDS_BEFORE void nghttp2_session_callbacks_set_on_frame_recv_callback(
    nghttp2_session_callbacks *callbacks, callback original) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, callback) = next(__func__, &known);
  callback ours = is_ours ? observer(original) : NULL;
  set(callbacks, ours ? ours : original);
  if (!ours) {
    // What is sent in such a session is not seen: nothing may be taken for not sent on this thread any more.
    if (is_ours) misses_requests = 1;
    return;
  }
  is_observed = 1;
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, writing);
  // No libcurl sets one. If one does, no end is known before it has come.
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begins);
}

STANDS_BEFORE void nghttp2_session_callbacks_set_on_stream_close_callback(
    nghttp2_session_callbacks *callbacks, nghttp2_on_stream_close_callback original) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, nghttp2_on_stream_close_callback) = next(__func__, &known);
  nghttp2_on_stream_close_callback first = NULL;
  int is_first = is_ours && original &&
      (atomic_compare_exchange_strong(&original_close, &first, original) || first == original);
  set(callbacks, is_first ? closed : original);
}

// No libcurl sets one. If one does, it takes the place of ours.
STANDS_BEFORE void nghttp2_session_callbacks_set_before_frame_send_callback(
    nghttp2_session_callbacks *callbacks, nghttp2_before_frame_send_callback callback) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, nghttp2_before_frame_send_callback) = next(__func__, &known);
  if (is_ours && callback != writing) misses_requests = 1;
  set(callbacks, callback);
}

// Older headers do not have the code for continuations (1.61, and what distributions have mended).
static enum netopt_failure failure_of(ssize_t result) {
  switch (result) {
  case NGHTTP2_ERR_FLOODED: return netopt_flooded;
  case -905: return netopt_too_many_continuations;
  case NGHTTP2_ERR_CALLBACK_FAILURE: return netopt_callback_failed;
  default: return netopt_failed;
  }
}

// After an error a session is in the middle of a frame. libcurl before 8.1.0 would give it the same bytes once more, and then others of the
// connection: it would take for frames what a peer has written into one.
STANDS_BEFORE ssize_t nghttp2_session_mem_recv(nghttp2_session *session, const uint8_t *bytes, size_t count) {
  static _Atomic(void *) known;
  ssize_t (*receive)(nghttp2_session *, const uint8_t *, size_t) = next(__func__, &known);
  if (!is_ours) return receive(session, bytes, count);
  if (failed.count && find(&failed, session) >= 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  ssize_t result = receive(session, bytes, count);
  if (result < 0) {
    add(&failed, session);
    add(&given_up, session);
    handlers.failed(session, failure_of(result));
  }
  return result;
}

STANDS_BEFORE void nghttp2_session_del(nghttp2_session *session) {
  static _Atomic(void *) known;
  void (*delete)(nghttp2_session *) = next(__func__, &known);
  if (is_ours) {
    take_out(&failed, session);
    take_out(&given_up, session);
    if (session) handlers.deleted(session);
  }
  delete(session);
}

// libcurl ends a request that nghttp2 has not sent yet. It would leave nghttp2 with the handle, which by then is another request's or freed,
// and is written to when the session comes to the request: libcurl takes it back only from those that were sent.
STANDS_BEFORE int nghttp2_submit_rst_stream(
    nghttp2_session *session, uint8_t flags, int32_t stream, uint32_t error) {
  static _Atomic(void *) known;
  int (*submit)(nghttp2_session *, uint8_t, int32_t, uint32_t) = next(__func__, &known);
  // With this code libcurl ends a stream that it is done with; others it ends still want to hear of their end.
  if (is_ours && error == NGHTTP2_STREAM_CLOSED) nghttp2_session_set_stream_user_data(session, stream, NULL);
  return submit(session, flags, stream, error);
}

void netopt_observe_frames(struct netopt_frame_handlers new_handlers) {
  handlers = new_handlers;
  is_ours = 1;
}

int netopt_frames_are_observed(void) { return is_observed; }

int netopt_requests_are_observed(void) { return is_observed && !misses_requests; }

const void *netopt_session_given_up(void) {
  if (!given_up.count) return NULL;
  const void *session = given_up.list[given_up.count - 1];
  take_out_at(&given_up, given_up.count - 1);
  return session;
}
