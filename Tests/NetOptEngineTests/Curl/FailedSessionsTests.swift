import CFrameObserver
import Foundation
import Testing

/// nghttp2's sessions that failed: after an error nothing of them is read on, since the next bytes are in the middle of a frame.
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

  /// A function as libcurl finds it: ours where one stands before nghttp2's.
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

  /// - Returns: how many of the sessions failed, how many refused what came afterwards, and how many were told of.
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
    // An empty frame of SETTINGS, which fails in the callback. What follows would be taken for it once more, without an end.
    let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    let failed = sessions.count { receive($0, settings, settings.count) < 0 }
    let nothing: [UInt8] = [0]
    let refused = sessions.count { receive($0, nothing, 0) < 0 }
    var told = 0
    while netopt_session_given_up() != nil { told += 1 }
    let delete = try function("nghttp2_session_del", Delete.self)
    for session in sessions { delete(session) }
    try function("nghttp2_session_callbacks_del", Delete.self)(made)
    return (failed, refused, told)
  }

  @Test(
    "all sessions that fail in one turn are refused from then on, and told of", arguments: [1, 64, 65, 1000])
  func many(count: Int) async throws {
    // A thread of its own: what is observed belongs to the thread.
    let outcome = await withCheckedContinuation { continuation in
      Thread { continuation.resume(returning: Result { try Self.run(count) }) }.start()
    }
    let (failed, refused, told) = try outcome.get()
    #expect((failed, refused, told) == (count, count, count))
  }
}
