import CCurl
import CFrameObserver

/// Observes the HTTP/2 frames that libcurl receives and sends on the threads of event loops: docs/adr/0025.
/// The private functions below are the handlers. FrameObserver.h says when each handler is called, and what
/// its arguments mean.
enum FrameObserver {
  /// Starts to observe the frames that libcurl processes on this thread.
  static func start() {
    netopt_observe_frames(
      netopt_frame_handlers(
        ending: ending, received: received, requested: requested, closed: closed, refused: refused,
        leaving: leaving, rejected: rejected, failed: failed, deleted: deleted, resumes: resumes,
        sends: sends, hides_reset: hidesReset, keeps_rests: CurlLibrary.forgetsInput ? 1 : 0))
    if CurlLibrary.gathersFrames { netopt_watch_room(socket(of:), held) }
  }

  /// Whether libcurl holds received bytes of a connection that nghttp2 has not read, because a stream's
  /// reader was slow. Always false if `CurlLibrary.forgetsInput` is false.
  static func hasRest(_ session: UnsafeRawPointer) -> Bool { netopt_has_rest(session) != 0 }

  /// Whether the observer has seen the frames of an HTTP/2 connection of this thread. It then sees those of
  /// all connections, because libcurl sets the same callbacks for each. False if no connection has used
  /// HTTP/2 yet, or if libcurl contains nghttp2 itself instead of the shared library.
  static var isActive: Bool { netopt_frames_are_observed() != 0 }

  /// Whether the observer also sees when each request's head is about to be written.
  static var observesRequests: Bool { netopt_requests_are_observed() != 0 }

  /// Whether a session of this thread has kept a frame since the last call, because its socket has no room.
  static func takeHeld() -> Bool { netopt_take_held() != 0 }

  /// Removes and returns one of this thread's HTTP/2 sessions that failed, or that nghttp2 gave up because
  /// the peer broke a rule; `nil` if there is none. Compare the pointer with `LiveConnection.session`. It
  /// must not be dereferenced, because the session may have been freed.
  static func takeAbandonedSession() -> UnsafeRawPointer? { netopt_take_abandoned_session() }
}

/// The size of a response's body according to the DATA frames of its stream, before content decoding. Also
/// records whether the stream has ended.
struct ReceivedFrames {
  /// The total number of body bytes in the frames that have arrived whole.
  private var bytes = 0
  /// Whether the frame that ends the stream (END_STREAM) has arrived whole.
  private(set) var hasEnded = false
  /// The number of body bytes in the DATA frame that ends the stream, set when the frame's header arrives;
  /// `nil` before.
  private var last: Int?

  /// Records that the header of the DATA frame that ends the stream arrived.
  ///
  /// - Parameter count: the number of body bytes in the frame.
  mutating func end(with count: Int) { last = count }

  /// Records a frame that has arrived whole.
  ///
  /// - Parameters:
  ///   - count: the number of body bytes in the frame.
  ///   - ends: whether the frame ends the stream.
  mutating func add(_ count: Int, ends: Bool) {
    bytes += count
    if ends { hasEnded = true }
  }

  /// The length of the body in bytes, once the frame that ends the stream (END_STREAM; RFC 9113, section 8.1)
  /// has begun to arrive; `nil` before.
  var length: Int? { hasEnded ? bytes : last.map { bytes + $0 } }
}

/// The header of the DATA frame that ends a stream has arrived.
private func ending(_ easy: UnsafeMutableRawPointer?, _ bytes: Int) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.frames.end(with: bytes)
}

/// A DATA or HEADERS frame has arrived whole.
private func received(_ easy: UnsafeMutableRawPointer?, _ bytes: Int, _ end: netopt_stream_end) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.received(
    frameOf: bytes, ends: end != netopt_stream_open, isEarly: end == netopt_stream_ended_early)
}

/// nghttp2 has closed a stream on which the response ended before the whole request was sent. Also called for
/// some other streams, for which `streamClosed` does nothing.
private func closed(_ easy: UnsafeMutableRawPointer?) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.streamClosed()
}

/// The head of a request is about to be written on a stream.
private func requested(
  _ easy: UnsafeMutableRawPointer?, _ session: UnsafeRawPointer?, _ stream: Int32, _ limit: UInt32
) {
  guard let easy, let session, let transfer = EasyHandle.transfer(of: easy) else { return }
  transfer.sent.writes(on: stream, limit: limit)
  transfer.sentBody.beginStream()
  transfer.connection?.setSession(session)
}

/// The server refused a stream (REFUSED_STREAM) without processing its request.
private func refused(_ easy: UnsafeMutableRawPointer?, _ limit: UInt32) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.sent.streamRefused(limit: limit)
}

/// The server announced the end of a connection (GOAWAY).
private func leaving(_ session: UnsafeRawPointer?, _ lastStream: Int32) {
  guard let session else { return }
  LiveConnection.withSession(session)?.noteGoAway(lastStream: lastStream)
}

/// nghttp2 ends a stream, because received data breaks a rule. If `easy` is `nil`, nghttp2 ends the whole
/// session.
private func rejected(_ easy: UnsafeMutableRawPointer?, _ session: UnsafeRawPointer?, _ code: UInt32) {
  if let easy {
    EasyHandle.transfer(of: easy)?.wasRejected(code)
  } else if let session {
    LiveConnection.withSession(session)?.wasRejected(.code(code))
  }
}

/// A session has failed while nghttp2 processed received bytes.
private func failed(_ session: UnsafeRawPointer?, _ failure: netopt_failure) {
  guard let session, let connection = LiveConnection.withSession(session) else { return }
  switch failure {
  case netopt_flooded: connection.wasRejected(.flood)
  case netopt_too_many_continuations: connection.wasRejected(.continuations)
  case netopt_callback_failed: connection.wasRejected(CurlLibrary.refusesInvalidFrames ? .refusal : .room)
  default: break
  }
}

/// libcurl passes a part of a request's body to nghttp2.
private func resumes(_ easy: UnsafeMutableRawPointer?) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.sentBody.beginPart()
}

/// nghttp2 has taken bytes of a request's body. Returns whether they may be sent.
private func sends(_ easy: UnsafeMutableRawPointer?, _ bytes: Int) -> Int32 {
  guard let easy, let transfer = EasyHandle.transfer(of: easy) else { return 1 }
  return transfer.maySend(frameOf: bytes) ? 1 : 0
}

/// Whether to hide a reset of a stream with NO_ERROR from libcurl. When such a reset follows a complete
/// response, libcurl before 8.1.0 drops the part of the response that it has received and not yet delivered.
private func hidesReset(_ easy: UnsafeMutableRawPointer?) -> Int32 {
  guard CurlLibrary.dropsAnswersAtResets, let easy, let transfer = EasyHandle.transfer(of: easy) else {
    return 0
  }
  return transfer.hasStreamEnded ? 1 : 0
}

/// Returns the socket of a session's connection; -1 if it is unknown.
private func socket(of session: UnsafeRawPointer?) -> Int32 {
  session.flatMap { LiveConnection.withSession($0) }?.descriptor ?? -1
}

/// nghttp2 keeps a frame of a session until the connection's socket has room.
private func held(_ session: UnsafeRawPointer?) {
  guard let session else { return }
  LiveConnection.withSession(session)?.holdsFrames = true
}

/// A session is about to be freed.
private func deleted(_ session: UnsafeRawPointer?) {
  guard let session else { return }
  LiveConnection.withSession(session)?.removeSession()
}
