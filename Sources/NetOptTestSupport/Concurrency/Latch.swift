/// A latch that opens once. Tasks can wait until it is open.
public final class Latch: Sendable {
  /// The state of the latch: true when it is open.
  private let isOpen = AsyncCondition(false)

  /// Creates a closed latch.
  public init() {}

  /// Opens the latch permanently. Thread-safe.
  public func open() { isOpen.update { $0 = true } }

  /// Suspends the task until the latch is open.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  public func wait() async throws {
    guard await isOpen.wait(until: { $0 }) else { throw CancellationError() }
  }

  /// Whether the latch is open.
  public var opened: Bool { isOpen.state }

  /// The number of tasks that wait for the latch.
  public var waiting: Int { isOpen.waiting }
}
