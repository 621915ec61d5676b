// Replaces functions of nghttp2 that libcurl calls, in order to see the frames (docs/adr/0025). _GNU_SOURCE
// declares RTLD_NEXT of dlsym(3).
#define _GNU_SOURCE
#include "FrameObserver.h"
#include "Interposed.h"
#include "SocketRoom.h"

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <stdlib.h>

// A callback of libcurl that nghttp2 calls when a whole frame has arrived.
typedef nghttp2_on_frame_recv_callback callback;

// The functions that `netopt_observe_frames` was given on this thread.
static _Thread_local struct netopt_frame_handlers handlers;
// Whether this thread has called `netopt_observe_frames`. On other threads every function here only calls
// nghttp2's.
static _Thread_local int is_ours;
// Whether the observer replaced libcurl's callback for received frames in a session of this thread.
static _Thread_local int is_observed;
// Whether a session of this thread may send requests that the observer does not see.
static _Thread_local int misses_requests;
// Whether the server has ever ended a stream of this thread before the whole request was sent. Only then does
// the observer call `handlers.closed`.
static _Thread_local int has_early_ends;
// Whether a request of this thread had a body. Only then does the observer call `handlers.resumes`.
static _Thread_local int has_bodies;

// A session in a set. next, count: the bytes at which the session must continue (`rests`); unused in the other
// sets.
struct entry {
  const void *session;
  const uint8_t *next;
  size_t count;
};
// A set of sessions of this thread. An empty set holds no memory, so a thread that ends with empty sets leaks
// nothing. count: the number of sessions in `list`. room: the number that fits. Few sessions are in a set at a
// time, so a search through the list is fast enough.
struct sessions {
  struct entry *list;
  int count, room;
};
// The sessions that have failed or have sent GOAWAY, until `netopt_take_abandoned_session` takes them or
// nghttp2 frees them.
static _Thread_local struct sessions abandoned;
// The sessions that have failed and are not freed yet.
static _Thread_local struct sessions failed;
// The sessions that have stopped before the end of the bytes that they were given, because a stream's reader is
// slow. libcurl before 8.1.0 keeps the rest of the bytes in place for the next call.
static _Thread_local struct sessions rests;

// Returns the index of a session in a set; -1 when the set does not have the session.
static int find(const struct sessions *some, const void *session) {
  for (int index = 0; index < some->count; index++)
    if (some->list[index].session == session) return index;
  return -1;
}

// Adds an entry to a set, unless the set has its session.
static void add(struct sessions *some, struct entry entry) {
  if (find(some, entry.session) >= 0) return;
  if (some->count == some->room) {
    int room = some->room ? 2 * some->room : 16;
    struct entry *list = realloc(some->list, (size_t)room * sizeof *list);
    // A failed session that is not in the list would be given further bytes in the middle of a frame. Swift
    // also ends the process when there is no memory.
    if (!list) abort();
    some->list = list;
    some->room = room;
  }
  some->list[some->count++] = entry;
}

// Removes the session at an index. The order of the others changes.
static void remove_at(struct sessions *some, int index) {
  some->list[index] = some->list[--some->count];
  if (some->count) return;
  free(some->list);
  some->list = NULL;
  some->room = 0;
}

static void remove_session(struct sessions *some, const void *session) {
  int index = find(some, session);
  if (index >= 0) remove_at(some, index);
}

// Records that a session cannot continue.
static void fail(const void *session) {
  add(&failed, (struct entry){.session = session});
  add(&abandoned, (struct entry){.session = session});
}

// The callbacks for received frames that libcurl sets. The observer sets `observers[index]` in place of
// `originals[index]`. libcurl has one such callback, and newer releases have another one for proxies.
enum { most_originals = 4 };
static _Atomic(callback) originals[most_originals];

// Returns the maximum number of concurrent streams that the server has announced (RFC 9113, section 5.1.2).
// Before the announcement, nghttp2 assumes 100.
static uint32_t stream_limit(nghttp2_session *session) {
  return nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

// nghttp2 calls this when the header of a frame has arrived. The function handles only DATA frames that end
// their stream and have no padding. The header does not contain the length of the padding.
static int frame_begins(nghttp2_session *session, const nghttp2_frame_hd *head, void *data) {
  (void)data;
  if (!is_ours || head->type != NGHTTP2_DATA) return 0;
  if ((head->flags & (NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_PADDED)) != NGHTTP2_FLAG_END_STREAM) return 0;
  void *easy = nghttp2_session_get_stream_user_data(session, head->stream_id);
  if (easy) handlers.ending(easy, head->length);
  return 0;
}

// Tells the handlers of a received frame.
static void note(nghttp2_session *session, const nghttp2_frame *frame) {
  int is_data = frame->hd.type == NGHTTP2_DATA;
  if (is_data || frame->hd.type == NGHTTP2_HEADERS) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!easy) return;
    enum netopt_stream_end end = netopt_stream_open;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
      end = nghttp2_session_get_stream_local_close(session, frame->hd.stream_id) ? netopt_stream_ended
                                                                                 : netopt_stream_ended_early;
    if (end == netopt_stream_ended_early) has_early_ends = 1;
    handlers.received(easy, is_data ? frame->hd.length - frame->data.padlen : 0, end);
  } else if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM) {
    void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (easy) handlers.refused(easy, stream_limit(session));
  } else if (frame->hd.type == NGHTTP2_GOAWAY) {
    handlers.leaving(session, frame->goaway.last_stream_id);
  }
}

// Whether to hide a received frame from libcurl. Hides only RST_STREAM with NO_ERROR, with which a server
// that has sent its whole response asks for no more of the request (RFC 9113, section 8.1). libcurl still
// hears that the stream is closed.
static int is_hidden(nghttp2_session *session, const nghttp2_frame *frame) {
  if (frame->hd.type != NGHTTP2_RST_STREAM || frame->rst_stream.error_code != NGHTTP2_NO_ERROR) return 0;
  void *easy = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  return easy && handlers.hides_reset(easy);
}

// Observes a received frame, and passes it to libcurl's callback with this index.
static int received(int index, nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  // This runs before libcurl's own callback and before the stream is closed. Afterwards nghttp2 no longer
  // knows the easy handle.
  if (is_ours) {
    note(session, frame);
    if (is_hidden(session, frame)) return 0;
  }
  return atomic_load(&originals[index])(session, frame, data);
}

// nghttp2 passes no index to a callback, so each index has a function.
static int received0(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(0, s, f, d); }
static int received1(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(1, s, f, d); }
static int received2(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(2, s, f, d); }
static int received3(nghttp2_session *s, const nghttp2_frame *f, void *d) { return received(3, s, f, d); }
static const callback observers[most_originals] = {received0, received1, received2, received3};

// Returns the function that replaces a callback of libcurl; NULL when libcurl has set more than
// `most_originals` callbacks.
static callback observer(callback original) {
  for (int index = 0; original && index < most_originals; index++) {
    callback known = NULL;
    if (atomic_compare_exchange_strong(&originals[index], &known, original) || known == original)
      return observers[index];
  }
  return NULL;
}

// The first callback that libcurl sets for closed streams. The observer replaces only this one.
static _Atomic(nghttp2_on_stream_close_callback) original_close;

// nghttp2 calls this when a stream is closed, in place of `original_close`.
static int closed(nghttp2_session *session, int32_t stream, uint32_t error, void *data) {
  // libcurl's callback removes the easy handle from the stream.
  void *easy = is_ours && has_early_ends ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
  int result = atomic_load(&original_close)(session, stream, error, data);
  if (easy) handlers.closed(easy);
  return result;
}

// The first callback with which libcurl gives nghttp2 the body of a request. The observer replaces only this
// one.
static _Atomic(nghttp2_data_source_read_callback) original_body;

// nghttp2 calls this for the content of a DATA frame, in place of `original_body`.
static ssize_t reads_body(
    nghttp2_session *session, int32_t stream, uint8_t *bytes, size_t room, uint32_t *flags,
    nghttp2_data_source *source, void *data) {
  ssize_t count = atomic_load(&original_body)(session, stream, bytes, room, flags, source, data);
  void *easy = is_ours && count > 0 ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
  // nghttp2 then resets the stream and sends no frame with these bytes.
  return easy && !handlers.sends(easy, (size_t)count) ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : count;
}

// Whether nghttp2 ends a stream with this error code because received data breaks a rule. STREAM_CLOSED and
// CANCEL do not count: with these codes nghttp2 ends streams because libcurl asked for it.
static int rejects_stream(uint32_t code) {
  return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_FRAME_SIZE_ERROR ||
      code == NGHTTP2_COMPRESSION_ERROR;
}

// Whether nghttp2 ends a session with this error code because received data breaks a rule. INTERNAL_ERROR
// does not count: it means that a callback failed.
static int rejects_session(uint32_t code) { return code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR; }

// nghttp2 calls this before it writes a frame. The stream of a request is already open then.
static int writing(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
  (void)data;
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    add(&abandoned, (struct entry){.session = session});
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

INTERPOSED void nghttp2_session_callbacks_set_on_frame_recv_callback(
    nghttp2_session_callbacks *callbacks, callback original) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, callback) = next(__func__, &known);
  callback ours = is_ours ? observer(original) : NULL;
  set(callbacks, ours ? ours : original);
  if (!ours) {
    // Without `writing`, the observer does not see the frames that this session sends. From now on, no
    // request of this thread counts as unsent.
    if (is_ours) misses_requests = 1;
    return;
  }
  is_observed = 1;
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, writing);
  // No release of libcurl sets this callback. If a release does, its callback replaces `frame_begins`, and
  // the observer knows the end of a stream only when the whole frame has arrived.
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, frame_begins);
}

INTERPOSED void nghttp2_session_callbacks_set_on_stream_close_callback(
    nghttp2_session_callbacks *callbacks, nghttp2_on_stream_close_callback original) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, nghttp2_on_stream_close_callback) = next(__func__, &known);
  nghttp2_on_stream_close_callback first = NULL;
  int is_first = is_ours && original &&
      (atomic_compare_exchange_strong(&original_close, &first, original) || first == original);
  set(callbacks, is_first ? closed : original);
}

// No release of libcurl sets this callback. If a release does, its callback replaces `writing`, and the
// observer misses requests.
INTERPOSED void nghttp2_session_callbacks_set_before_frame_send_callback(
    nghttp2_session_callbacks *callbacks, nghttp2_before_frame_send_callback callback) {
  static _Atomic(void *) known;
  void (*set)(nghttp2_session_callbacks *, nghttp2_before_frame_send_callback) = next(__func__, &known);
  if (is_ours && callback != writing) misses_requests = 1;
  set(callbacks, callback);
}

// Translates an error of nghttp2_session_mem_recv. -905 means too many CONTINUATION frames. Headers define
// this code only since nghttp2 1.61, but fixed packages of distributions also return it from older versions.
static enum netopt_failure failure_of(ssize_t result) {
  switch (result) {
  case NGHTTP2_ERR_FLOODED: return netopt_flooded;
  case -905: return netopt_too_many_continuations;
  case NGHTTP2_ERR_CALLBACK_FAILURE: return netopt_callback_failed;
  default: return netopt_failed;
  }
}

// Passes received bytes to a session, and refuses further bytes for a session that has failed. A failed
// session stopped in the middle of a frame. libcurl before 8.1.0 would pass it the same bytes again, and
// later other bytes of the connection. The session would then read new frames from the inside of one of
// the peer's frames.
//
// The same would happen to a session that has stopped because a stream's reader is slow. libcurl before 8.1.0
// forgets the bytes that the session has not read when that stream ends and the idle connection is used again
// (`http2_connisdead`): it gives the session the next bytes of the connection. So a session must continue
// where it has stopped.
INTERPOSED ssize_t nghttp2_session_mem_recv(nghttp2_session *session, const uint8_t *bytes, size_t count) {
  static _Atomic(void *) known;
  ssize_t (*receive)(nghttp2_session *, const uint8_t *, size_t) = next(__func__, &known);
  if (!is_ours) return receive(session, bytes, count);
  if (failed.count && find(&failed, session) >= 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  int index = rests.count ? find(&rests, session) : -1;
  if (index >= 0) {
    int continues = bytes == rests.list[index].next && count == rests.list[index].count;
    remove_at(&rests, index);
    if (!continues) {
      fail(session);
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }
  ssize_t result = receive(session, bytes, count);
  if (handlers.keeps_rests && result >= 0 && (size_t)result < count)
    add(&rests, (struct entry){session, bytes + result, count - (size_t)result});
  if (result < 0) {
    fail(session);
    handlers.failed(session, failure_of(result));
  }
  return result;
}

// Forgets a session before nghttp2 frees it.
INTERPOSED void nghttp2_session_del(nghttp2_session *session) {
  static _Atomic(void *) known;
  void (*delete)(nghttp2_session *) = next(__func__, &known);
  if (is_ours) {
    remove_session(&failed, session);
    remove_session(&abandoned, session);
    remove_session(&rests, session);
    netopt_forget_room(session);
    if (session) handlers.deleted(session);
  }
  delete(session);
}

// Removes the easy handle from the stream of a request that libcurl ends. libcurl does not do this for a
// request that nghttp2 has not sent yet. nghttp2 would later come to this request, and libcurl's callback
// would write to the handle, although the handle may belong to another request or be freed by then.
INTERPOSED int nghttp2_submit_rst_stream(
    nghttp2_session *session, uint8_t flags, int32_t stream, uint32_t error) {
  static _Atomic(void *) known;
  int (*submit)(nghttp2_session *, uint8_t, int32_t, uint32_t) = next(__func__, &known);
  // libcurl ends a stream with STREAM_CLOSED when it has finished with the stream. After other codes, libcurl
  // still expects its callback for the end of the stream.
  if (is_ours && error == NGHTTP2_STREAM_CLOSED) nghttp2_session_set_stream_user_data(session, stream, NULL);
  int result = submit(session, flags, stream, error);
  if (is_ours && error == NGHTTP2_STREAM_CLOSED && result == 0) netopt_next_send_ends_streams();
  return result;
}

// Replaces the callback for the body of a request. libcurl from 8.1.0 on may call a newer function of nghttp2,
// which the observer does not replace: those releases do not repeat parts of a body.
INTERPOSED int32_t nghttp2_submit_request(
    nghttp2_session *session, const nghttp2_priority_spec *priority, const nghttp2_nv *fields, size_t count,
    const nghttp2_data_provider *body, void *stream_data) {
  static _Atomic(void *) known;
  int32_t (*submit)(
      nghttp2_session *, const nghttp2_priority_spec *, const nghttp2_nv *, size_t,
      const nghttp2_data_provider *, void *) = next(__func__, &known);
  nghttp2_data_provider ours;
  nghttp2_data_source_read_callback first = NULL;
  if (is_ours && body && body->read_callback &&
      (atomic_compare_exchange_strong(&original_body, &first, body->read_callback) ||
       first == body->read_callback)) {
    ours = *body;
    ours.read_callback = reads_body;
    body = &ours;
    has_bodies = 1;
  }
  return submit(session, priority, fields, count, body, stream_data);
}

// libcurl calls this before it passes a part of a body to nghttp2, and sometimes afterwards.
INTERPOSED int nghttp2_session_resume_data(nghttp2_session *session, int32_t stream) {
  static _Atomic(void *) known;
  int (*resume)(nghttp2_session *, int32_t) = next(__func__, &known);
  void *easy = is_ours && has_bodies ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
  if (easy) handlers.resumes(easy);
  return resume(session, stream);
}

void netopt_observe_frames(struct netopt_frame_handlers new_handlers) {
  handlers = new_handlers;
  is_ours = 1;
}

int netopt_has_rest(const void *session) { return find(&rests, session) >= 0; }

int netopt_frames_are_observed(void) { return is_observed; }

int netopt_requests_are_observed(void) { return is_observed && !misses_requests; }

const void *netopt_take_abandoned_session(void) {
  if (!abandoned.count) return NULL;
  const void *session = abandoned.list[abandoned.count - 1].session;
  remove_at(&abandoned, abandoned.count - 1);
  return session;
}
