// Observes the HTTP/2 frames that libcurl receives and sends (docs/adr/0025).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Whether a received frame ends its stream (END_STREAM). netopt_stream_ended_early: the frame ends the
// stream, and a part of the request was still unsent.
enum netopt_stream_end { netopt_stream_open, netopt_stream_ended, netopt_stream_ended_early };

// Why a session cannot continue. netopt_flooded: nghttp2 takes the frames of the peer for a flood.
// netopt_too_many_continuations: too many CONTINUATION frames. netopt_callback_failed: a callback of libcurl
// returned an error. netopt_failed: any other error of nghttp2.
enum netopt_failure { netopt_failed, netopt_flooded, netopt_too_many_continuations, netopt_callback_failed };

// The functions that the observer calls about frames, from within libcurl. `easy` is the easy handle that
// libcurl stored in nghttp2's stream. For proxies with HTTP/2 (CURLPROXY_HTTPS2) libcurl stores something
// else there, so do not use this option. `session` is the session of nghttp2, one for each connection.
struct netopt_frame_handlers {
  // The header of a DATA frame without padding has arrived, and the frame ends its stream. bytes: the number
  // of body bytes that the frame has, most of which may not have arrived yet.
  void (*ending)(void *easy, size_t bytes);
  // A whole DATA or HEADERS frame has arrived. bytes: the number of body bytes in the frame.
  void (*received)(void *easy, size_t bytes, enum netopt_stream_end end);
  // nghttp2 is about to write the head of a request. From now on, parts of the request may reach the server.
  // stream: the number of its stream. limit: the maximum number of concurrent streams that the server has
  // announced so far; 100 before the announcement.
  void (*requested)(void *easy, const void *session, int32_t stream, uint32_t limit);
  // nghttp2 has closed a stream, and libcurl has heard of this. The observer calls the function for each
  // stream that ended early, and may call it for other streams.
  void (*closed)(void *easy);
  // RST_STREAM with REFUSED_STREAM has arrived. limit: the maximum number of concurrent streams that the
  // server has announced so far; 100 before the announcement.
  void (*refused)(void *easy, uint32_t limit);
  // GOAWAY has arrived. The server did not process streams with a higher number than last_stream (RFC 9113,
  // section 6.8).
  void (*leaving)(const void *session, int32_t last_stream);
  // nghttp2 ends a stream (RST_STREAM) because received data breaks a rule. When easy is NULL, nghttp2 ends
  // the whole session (GOAWAY). code: the error code that nghttp2 sends (RFC 9113, section 7).
  void (*rejected)(void *easy, const void *session, uint32_t code);
  // nghttp2 failed while the session processed received bytes, and the session cannot continue.
  void (*failed)(const void *session, enum netopt_failure failure);
  // nghttp2 is about to free a session. A later session may have the same address.
  void (*deleted)(const void *session);
  // libcurl is about to pass a part of a request's body to nghttp2, or has just done so. The observer may call
  // the function for requests without a body too.
  void (*resumes)(void *easy);
  // nghttp2 has taken bytes of a request's body for the next DATA frame. Returns whether the frame may be
  // sent; if not, nghttp2 resets the stream.
  int (*sends)(void *easy, size_t bytes);
  // RST_STREAM with NO_ERROR has arrived. Returns whether to hide it from libcurl.
  int (*hides_reset)(void *easy);
  // Whether libcurl keeps the bytes that a session has not read in place, and passes exactly these bytes next.
  // The observer then makes a session fail that does not continue with them. libcurl before 8.1.0 does.
  int keeps_rests;
};

// Sets the handlers for this thread. The observer calls them for the sessions that libcurl sets up on this
// thread from now on. A repeated call replaces the handlers.
void netopt_observe_frames(struct netopt_frame_handlers handlers);

// Whether a session of this thread has stopped before the end of the bytes that it was given. Always 0 unless
// `keeps_rests` is set.
int netopt_has_rest(const void *session);

// Whether the observer has replaced libcurl's callback for received frames in a session of this thread. The
// observer then tells the handlers of all frames of this session.
int netopt_frames_are_observed(void);

// Whether `requested` is called for every request that is written on this thread.
int netopt_requests_are_observed(void);

// Removes and returns a session of this thread that has failed or has sent GOAWAY; NULL when there is none.
// nghttp2 sends GOAWAY when the peer breaks a rule. The session's connection may already be closed.
const void *netopt_take_abandoned_session(void);
