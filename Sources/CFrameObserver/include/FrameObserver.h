// Sees the HTTP/2 frames that libcurl receives and sends (docs/adr/0025).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Whether a frame ends its stream (END_STREAM), and whether some of the request was still to be sent then.
enum netopt_end { netopt_goes_on, netopt_ends, netopt_ends_early };

// Why a session cannot go on: nghttp2 was given more than it takes, or a callback of libcurl's refused something.
enum netopt_failure { netopt_failed, netopt_flooded, netopt_too_many_continuations, netopt_callback_failed };

// Told of frames, from within libcurl. A stream has the easy handle that libcurl gave to nghttp2, which it does for servers; its HTTP/2 for proxies
// (CURLPROXY_HTTPS2) gives something else, and must not be used. A session is one of nghttp2's.
struct netopt_frame_handlers {
  // The head of a DATA frame without padding has come, which ends its stream. bytes: how much of a body comes with it.
  void (*ending)(void *easy, size_t bytes);
  // A DATA or HEADERS frame has come whole. bytes: how much of a body it had.
  void (*received)(void *easy, size_t bytes, enum netopt_end end);
  // The head of a request is about to be written on a stream: some of it may leave from now on. limit: how many streams the server is known to
  // take at once.
  void (*requested)(void *easy, const void *session, int32_t stream, uint32_t limit);
  // A stream that ended early is closed. libcurl has heard of it. Others may be told of as well.
  void (*closed)(void *easy);
  // RST_STREAM with REFUSED_STREAM has come. limit: as above, by now.
  void (*refused)(void *easy, uint32_t limit);
  // GOAWAY has come. Streams above the last one were not processed (RFC 9113, section 6.8).
  void (*leaving)(const void *session, int32_t last_stream);
  // nghttp2 ends a stream (RST_STREAM), or all of a session (GOAWAY) when there is no handle, because what came breaks a rule.
  void (*rejected)(void *easy, const void *session, uint32_t code);
  // A session has failed while it took what had come.
  void (*failed)(const void *session, enum netopt_failure failure);
  // A session is about to be freed: another one may have its address.
  void (*deleted)(const void *session);
  // RST_STREAM with NO_ERROR has come. Whether libcurl is not to see it.
  int (*hides_reset)(void *easy);
};

// Has handlers told of the frames of sessions that libcurl sets up on this thread from now on. To be called again as often as one likes.
void netopt_observe_frames(struct netopt_frame_handlers handlers);

// Whether a session has been set up on this thread through the observer: the handlers are then told of all frames that are received.
int netopt_frames_are_observed(void);

// The same of requests: that `requested` is told of every one that is written.
int netopt_requests_are_observed(void);

// The next session of this thread that has failed, or has sent GOAWAY, as nghttp2 does when the peer breaks its rules; NULL when there is none. Its
// connection may be gone.
const void *netopt_session_given_up(void);
