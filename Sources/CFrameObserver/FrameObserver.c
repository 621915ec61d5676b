// RTLD_NEXT of dlsym(3).
#define _GNU_SOURCE
#include "FrameObserver.h"

#include <dlfcn.h>
#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

typedef nghttp2_on_frame_recv_callback callback;

static _Thread_local const struct netopt_frame_handlers *handlers;
static _Thread_local int is_observed;

// Sessions that were given up in one call of libcurl. Those that find no room are not told of: their calls end at their deadlines.
enum { most_given_up = 16 };
static _Thread_local const void *given_up[most_given_up];
static _Thread_local int given_up_count;

// The callbacks that libcurl sets, each with a function of ours in its place. There are two, for servers and for proxies.
enum { most_originals = 4 };
static _Atomic(callback) originals[most_originals];

static int received(int place, nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  int is_data = frame->hd.type == NGHTTP2_DATA;
  int ends = (is_data || frame->hd.type == NGHTTP2_HEADERS) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
  if (handlers && (is_data || ends)) {
    // Before libcurl's own callback, and before the stream is closed: nghttp2 then forgets whose it is.
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers->received(easy, is_data ? frame->hd.length - frame->data.padlen : 0, ends);
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

static int sent(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  (void)data;
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    if (given_up_count < most_given_up) given_up[given_up_count++] = session;
  } else if (handlers && frame->hd.type == NGHTTP2_HEADERS) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers->requested(easy, session);
  }
  return 0;
}

// Stands before nghttp2's function of this name in the order in which ld.so(8) looks symbols up, so that libcurl calls it. Weak, so that
// a program into which nghttp2 is linked statically still links; nothing is observed then.
__attribute__((weak, visibility("default"))) void nghttp2_session_callbacks_set_on_frame_recv_callback(
    nghttp2_session_callbacks *callbacks, callback original) {
  typedef void (*setter)(nghttp2_session_callbacks *, callback);
  setter set = (setter)dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_frame_recv_callback");
  // This module is linked with nghttp2, which therefore has it.
  if (!set) return;
  callback ours = handlers ? observer(original) : NULL;
  set(callbacks, ours ? ours : original);
  if (!ours) return;
  is_observed = 1;
  // libcurl sets none, or one that traces.
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, sent);
}

void netopt_observe_frames(const struct netopt_frame_handlers *new_handlers) { handlers = new_handlers; }

int netopt_frames_are_observed(void) { return is_observed; }

const void *netopt_session_given_up(void) {
  return given_up_count ? given_up[--given_up_count] : NULL;
}
