// Keeps small HTTP/2 frames in nghttp2 while a socket has no room for them (docs/adr/0025).
#pragma once

// Starts to keep frames back on this thread, for the sessions that libcurl sets up on it from now on. Call this
// only with libcurl 7.88.0 to 8.0.1. socket: returns the socket of the connection of a session of nghttp2; -1 if
// it is unknown. held: called when a session keeps a frame. netopt must then make libcurl let the session send
// when the socket has room.
void netopt_watch_room(int (*socket)(const void *session), void (*held)(const void *session));

// Whether a session of this thread has kept a frame since the last call of this function.
int netopt_take_held(void);

// Says that libcurl ends a stream with the next call of nghttp2_session_send on this thread. libcurl does not
// write what it gathers in this call.
void netopt_next_send_ends_streams(void);

// Forgets a session that nghttp2 is about to free.
void netopt_forget_room(const void *session);
