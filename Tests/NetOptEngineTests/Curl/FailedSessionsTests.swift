import CFrameObserver
import Foundation
import Testing

/// Failed sessions of nghttp2. After an error, the observer (`CFrameObserver`) refuses all further input for
/// the session, because nghttp2 stopped in the middle of a frame.
@Suite struct FailedSessionsTests {
  // Pointers to nghttp2's structures, and the types of its functions, which the test finds by name.
  private typealias Session = OpaquePointer
  private typealias Callbacks = OpaquePointer
  private typealias NewCallbacks = @convention(c) (UnsafeMutablePointer<Callbacks?>) -> Int32
  private typealias NewSession =
    @convention(c) (UnsafeMutablePointer<Session?>, Callbacks, UnsafeMutableRawPointer?) -> Int32
  private typealias Receive = @convention(c) (Session, UnsafePointer<UInt8>, Int) -> Int
  private typealias BeginFrame =
    @convention(c) (OpaquePointer?, UnsafeRawPointer?, UnsafeMutableRawPointer?) -> Int32
  private typealias SetBeginFrame = @convention(c) (Callbacks, BeginFrame) -> Void
  private typealias Delete = @convention(c) (OpaquePointer) -> Void

  /// Returns the function that libcurl calls for a name of nghttp2: netopt's replacement if there is one,
  /// otherwise nghttp2's own function.
  ///
  /// The second parameter is the type of the function. Nothing checks this type.
  private static func function<Function>(_ name: String, _: Function.Type) throws -> Function {
    unsafeBitCast(
      try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), name), "\(name)"), to: Function.self)
  }

  /// Starts the observer on this thread, with handlers that do nothing.
  private static func observe() {
    netopt_observe_frames(
      netopt_frame_handlers(
        ending: { _, _ in }, received: { _, _, _ in }, requested: { _, _, _, _ in }, closed: { _ in },
        refused: { _, _ in },
        leaving: { _, _ in }, rejected: { _, _, _ in }, failed: { _, _ in }, deleted: { _ in },
        resumes: { _ in }, sends: { _, _ in 1 }, hides_reset: { _ in 0 }, keeps_rests: 0))
  }

  /// Makes sessions, and gives each of them a frame at which it fails, and then more input.
  ///
  /// - Parameter count: the number of sessions.
  /// - Returns: the number of sessions that failed, the number that refused the later input, and the number
  ///   that `netopt_take_abandoned_session` reported.
  private static func run(_ count: Int) throws -> (failed: Int, refused: Int, told: Int) {
    observe()
    let receive = try function("nghttp2_session_mem_recv", Receive.self)
    let newSession = try function("nghttp2_session_client_new", NewSession.self)
    var callbacks: Callbacks?
    try #require(try function("nghttp2_session_callbacks_new", NewCallbacks.self)(&callbacks) == 0)
    let made = try #require(callbacks)
    // NGHTTP2_ERR_CALLBACK_FAILURE, as libcurl's callbacks return it.
    try function("nghttp2_session_callbacks_set_on_begin_frame_callback", SetBeginFrame.self)(made) {
      _, _, _ in -902
    }
    let sessions = try (0..<count).map { _ in
      var session: Session?
      try #require(newSession(&session, made, nil) == 0)
      return try #require(session)
    }
    // An empty SETTINGS frame, for which the callback fails. Without the observer, nghttp2 would accept the
    // later input and go on in the middle of this frame.
    let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    let failed = sessions.count { receive($0, settings, settings.count) < 0 }
    // The later input has 0 bytes. The array only makes the pointer valid.
    let nothing: [UInt8] = [0]
    let refused = sessions.count { receive($0, nothing, 0) < 0 }
    var told = 0
    while netopt_take_abandoned_session() != nil { told += 1 }
    let delete = try function("nghttp2_session_del", Delete.self)
    for session in sessions { delete(session) }
    try function("nghttp2_session_callbacks_del", Delete.self)(made)
    return (failed, refused, told)
  }

  @Test(
    "sessions that fail in one turn refuse all later input and are reported", arguments: [1, 64, 65, 1000])
  func many(count: Int) async throws {
    // The observer keeps its state for each thread, so the test has a thread that nothing else uses.
    let outcome = await withCheckedContinuation { continuation in
      Thread { continuation.resume(returning: Result { try Self.run(count) }) }.start()
    }
    let (failed, refused, told) = try outcome.get()
    #expect((failed, refused, told) == (count, count, count))
  }
}
