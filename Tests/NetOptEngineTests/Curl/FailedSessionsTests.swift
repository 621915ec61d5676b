import CFrameObserver
import Foundation
import Testing

/// Failed sessions of nghttp2. After an error the observer refuses all further input of the session, because
/// the next bytes are in the middle of a frame.
@Suite struct FailedSessionsTests {
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

  /// Returns a function as libcurl finds it: netopt's function if it stands before nghttp2's.
  private static func function<Function>(_ name: String, _: Function.Type) throws -> Function {
    unsafeBitCast(
      try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), name), "\(name)"), to: Function.self)
  }

  private static func observe() {
    netopt_observe_frames(
      netopt_frame_handlers(
        ending: { _, _ in }, received: { _, _, _ in }, requested: { _, _, _, _ in }, closed: { _ in },
        refused: { _, _ in },
        leaving: { _, _ in }, rejected: { _, _, _ in }, failed: { _, _ in }, deleted: { _ in },
        hides_reset: { _ in 0 }))
  }

  /// - Returns: the number of sessions that failed, that refused later input, and that were reported.
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
    // An empty SETTINGS frame, for which the callback fails. nghttp2 would take later input for the same
    // frame again, without end.
    let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    let failed = sessions.count { receive($0, settings, settings.count) < 0 }
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
    // A separate thread, because the state of the observer belongs to its thread.
    let outcome = await withCheckedContinuation { continuation in
      Thread { continuation.resume(returning: Result { try Self.run(count) }) }.start()
    }
    let (failed, refused, told) = try outcome.get()
    #expect((failed, refused, told) == (count, count, count))
  }
}
