// Observes the HTTP/2 frames that libcurl receives and sends (docs/adr/0025).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Whether a frame ends its stream (END_STREAM), and if so, whether a part of the request was still unsent.
enum netopt_stream_end { netopt_stream_open, netopt_stream_ended, netopt_stream_ended_early };

// Why a session cannot go on: nghttp2 received more than it accepts, or a callback of libcurl refused
// something.
enum netopt_failure { netopt_failed, netopt_flooded, netopt_too_many_continuations, netopt_callback_failed };

// The functions that are told of frames, from within libcurl. `easy` is the easy handle that libcurl stored
// in nghttp2's stream. libcurl does this for servers. For proxies with HTTP/2 (CURLPROXY_HTTPS2) libcurl
// stores something else, so do not use that option. `session` is a session of nghttp2.
struct netopt_frame_handlers {
  // The header of a DATA frame without padding has arrived, and the frame ends its stream. bytes: the number
  // of body bytes in the frame.
  void (*ending)(void *easy, size_t bytes);
  // A whole DATA or HEADERS frame has arrived. bytes: the number of body bytes in the frame.
  void (*received)(void *easy, size_t bytes, enum netopt_stream_end end);
  // The head of a request is about to be written on a stream. From now on, parts of the request may leave.
  // limit: the known number of streams that the server accepts at once.
  void (*requested)(void *easy, const void *session, int32_t stream, uint32_t limit);
  // A stream that ended early is closed, and libcurl has heard of this. The function may be called for other
  // streams too.
  void (*closed)(void *easy);
  // RST_STREAM with REFUSED_STREAM has arrived. limit: as above, at this time.
  void (*refused)(void *easy, uint32_t limit);
  // GOAWAY has arrived. The server did not process streams above last_stream (RFC 9113, section 6.8).
  void (*leaving)(const void *session, int32_t last_stream);
  // nghttp2 ends a stream (RST_STREAM) because received data breaks a rule. Without a handle, nghttp2 ends
  // the whole session (GOAWAY).
  void (*rejected)(void *easy, const void *session, uint32_t code);
  // A session has failed while it processed received bytes.
  void (*failed)(const void *session, enum netopt_failure failure);
  // A session is about to be freed. A later session may have the same address.
  void (*deleted)(const void *session);
  // RST_STREAM with NO_ERROR has arrived. Returns whether to hide it from libcurl.
  int (*hides_reset)(void *easy);
};

// Tells the handlers of the frames of sessions that libcurl sets up on this thread from now on. Repeated
// calls are allowed.
void netopt_observe_frames(struct netopt_frame_handlers handlers);

// Whether a session was set up on this thread through the observer. The handlers are then told of all
// received frames.
int netopt_frames_are_observed(void);

// Whether `requested` is called for every request that is written on this thread.
int netopt_requests_are_observed(void);

// Removes and returns a session of this thread that has failed or has sent GOAWAY, as nghttp2 does when the
// peer breaks a rule; NULL when there is none. The session's connection may be gone.
const void *netopt_take_abandoned_session(void);
