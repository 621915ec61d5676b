import CCurl
import CFrameObserver

/// Observes the HTTP/2 frames that libcurl receives and sends on the threads of event loops: docs/adr/0025.
/// The functions below are the handlers; FrameObserver.h says when each handler is called.
enum FrameObserver {
  /// Starts to observe the frames that libcurl processes on this thread.
  static func start() {
    netopt_observe_frames(
      netopt_frame_handlers(
        ending: ending, received: received, requested: requested, closed: closed, refused: refused,
        leaving: leaving, rejected: rejected, failed: failed, deleted: deleted, hides_reset: hidesReset))
  }

  /// Whether the observer sees the frames of all HTTP/2 connections of this thread. It sees no frames if
  /// nghttp2 is a part of libcurl itself.
  static var isActive: Bool { netopt_frames_are_observed() != 0 }

  /// Whether the observer also sees when libcurl writes the head of a request.
  static var observesRequests: Bool { netopt_requests_are_observed() != 0 }

  /// Removes and returns an HTTP/2 session of this thread that failed, or that nghttp2 gave up because the
  /// peer broke a rule; `nil` if there is none. `LiveConnection.session` holds the same pointer.
  static func takeAbandonedSession() -> UnsafeRawPointer? { netopt_take_abandoned_session() }
}

/// The size of a response's body according to the DATA frames of its stream.
struct ReceivedFrames {
  /// The number of body bytes in the frames that have arrived whole.
  private var bytes = 0
  /// Whether the last frame (END_STREAM) has arrived whole.
  private(set) var hasEnded = false
  /// The number of body bytes in the last frame, set when the frame's header arrives; `nil` before.
  private var last: Int?

  /// Records that the header of the last frame arrived.
  ///
  /// - Parameter count: the number of body bytes in the frame.
  mutating func end(with count: Int) { last = count }

  /// Records a whole frame.
  ///
  /// - Parameters:
  ///   - count: the number of body bytes in the frame.
  ///   - ends: whether the frame ends the stream.
  mutating func add(_ count: Int, ends: Bool) {
    bytes += count
    if ends { hasEnded = true }
  }

  /// The length of the body, once its last frame (END_STREAM; RFC 9113, section 8.1) has arrived or begun;
  /// `nil` before.
  var length: Int? { hasEnded ? bytes : last.map { bytes + $0 } }
}

private func ending(_ easy: UnsafeMutableRawPointer?, _ bytes: Int) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.frames.end(with: bytes)
}

private func received(_ easy: UnsafeMutableRawPointer?, _ bytes: Int, _ end: netopt_stream_end) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.received(
    frameOf: bytes, ends: end != netopt_stream_open, isEarly: end == netopt_stream_ended_early)
}

private func closed(_ easy: UnsafeMutableRawPointer?) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.streamClosed()
}

private func requested(
  _ easy: UnsafeMutableRawPointer?, _ session: UnsafeRawPointer?, _ stream: Int32, _ limit: UInt32
) {
  guard let easy, let session, let transfer = EasyHandle.transfer(of: easy) else { return }
  transfer.sent.writes(on: stream, limit: limit)
  transfer.connection?.setSession(session)
}

private func refused(_ easy: UnsafeMutableRawPointer?, _ limit: UInt32) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.sent.streamRefused(limit: limit)
}

private func leaving(_ session: UnsafeRawPointer?, _ lastStream: Int32) {
  guard let session else { return }
  LiveConnection.withSession(session)?.noteGoAway(lastStream: lastStream)
}

private func rejected(_ easy: UnsafeMutableRawPointer?, _ session: UnsafeRawPointer?, _ code: UInt32) {
  if let easy {
    EasyHandle.transfer(of: easy)?.wasRejected(code)
  } else if let session {
    LiveConnection.withSession(session)?.wasRejected(.code(code))
  }
}

private func failed(_ session: UnsafeRawPointer?, _ failure: netopt_failure) {
  guard let session, let connection = LiveConnection.withSession(session) else { return }
  switch failure {
  case netopt_flooded: connection.wasRejected(.flood)
  case netopt_too_many_continuations: connection.wasRejected(.continuations)
  case netopt_callback_failed: connection.wasRejected(CurlLibrary.refusesInvalidFrames ? .refusal : .room)
  default: break
  }
}

/// Whether to hide a reset from libcurl. When a reset follows a complete response, libcurl before 8.1.0 drops
/// the part of the response that it has received but not handed over.
private func hidesReset(_ easy: UnsafeMutableRawPointer?) -> Int32 {
  guard CurlLibrary.dropsAnswersAtResets, let easy, let transfer = EasyHandle.transfer(of: easy) else {
    return 0
  }
  return transfer.hasStreamEnded ? 1 : 0
}

private func deleted(_ session: UnsafeRawPointer?) {
  guard let session else { return }
  LiveConnection.withSession(session)?.removeSession()
}
