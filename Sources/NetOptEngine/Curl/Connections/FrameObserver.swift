import CCurl
import CFrameObserver

/// Sees the HTTP/2 frames that libcurl receives and sends on the loop's threads: docs/adr/0025.
enum FrameObserver {
  /// Has the frames noted of what libcurl does on this thread.
  static func start() {
    netopt_observe_frames(
      netopt_frame_handlers(
        ending: ending, received: received, requested: requested, closed: closed, refused: refused,
        leaving: leaving,
        rejected: rejected, failed: failed, deleted: deleted, hides_reset: hidesReset))
  }

  /// Whether the frames of all HTTP/2 connections of this thread are seen: not where nghttp2 is a part of libcurl itself.
  static var isInPlace: Bool { netopt_frames_are_observed() != 0 }

  /// Whether it is also seen when the head of a request is written.
  static var seesRequests: Bool { netopt_requests_are_observed() != 0 }

  /// An HTTP/2 session of this thread that has failed, or that nghttp2 gave up since the peer broke a rule: `LiveConnection.session`.
  static func takeGivenUp() -> UnsafeRawPointer? { netopt_session_given_up() }
}

/// What the frames of a stream had of its response's body.
struct ReceivedFrames {
  private var bytes = 0
  private(set) var hasEnded = false
  /// What is in the last frame, of which more than the head need not have come.
  private var last: Int?

  /// The head of the last frame came.
  mutating func end(with count: Int) { last = count }

  mutating func add(_ count: Int, ends: Bool) {
    bytes += count
    if ends { hasEnded = true }
  }

  /// How long the body is, once that is known: its last frame (END_STREAM; RFC 9113, section 8.1) has come or begun.
  var length: Int? { hasEnded ? bytes : last.map { bytes + $0 } }
}

private func ending(_ easy: UnsafeMutableRawPointer?, _ bytes: Int) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.frames.end(with: bytes)
}

private func received(_ easy: UnsafeMutableRawPointer?, _ bytes: Int, _ end: netopt_end) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.received(
    frameOf: bytes, ends: end != netopt_goes_on, isEarly: end == netopt_ends_early)
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
  transfer.connection?.carries(session)
}

private func refused(_ easy: UnsafeMutableRawPointer?, _ limit: UInt32) {
  guard let easy else { return }
  EasyHandle.transfer(of: easy)?.sent.wasRefused(limit: limit)
}

private func leaving(_ session: UnsafeRawPointer?, _ lastStream: Int32) {
  guard let session else { return }
  LiveConnection.carrying(session)?.leaves(after: lastStream)
}

private func rejected(_ easy: UnsafeMutableRawPointer?, _ session: UnsafeRawPointer?, _ code: UInt32) {
  if let easy {
    EasyHandle.transfer(of: easy)?.wasRejected(code)
  } else if let session {
    LiveConnection.carrying(session)?.wasRejected(.code(code))
  }
}

private func failed(_ session: UnsafeRawPointer?, _ failure: netopt_failure) {
  guard let session, let connection = LiveConnection.carrying(session) else { return }
  switch failure {
  case netopt_flooded: connection.wasRejected(.flood)
  case netopt_too_many_continuations: connection.wasRejected(.continuations)
  case netopt_callback_failed: connection.wasRejected(CurlLibrary.refusesInvalidFrames ? .refusal : .room)
  default: break
  }
}

/// Behind the end of an answer libcurl before 8.1.0 would throw away what it has of it and has not handed over.
private func hidesReset(_ easy: UnsafeMutableRawPointer?) -> Int32 {
  guard CurlLibrary.dropsAnswersAtResets, let easy, let transfer = EasyHandle.transfer(of: easy) else {
    return 0
  }
  return transfer.hasStreamEnded ? 1 : 0
}

private func deleted(_ session: UnsafeRawPointer?) {
  guard let session else { return }
  LiveConnection.carrying(session)?.carriesNothing()
}
