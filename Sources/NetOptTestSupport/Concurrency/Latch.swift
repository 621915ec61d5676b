/// A gate that is opened once, and tasks that wait for that.
public final class Latch: Sendable {
  private let isOpen = AsyncCondition(false)

  /// Makes a closed gate.
  public init() {}

  /// Opens it, for good. Safe from any thread.
  public func open() { isOpen.update { $0 = true } }

  /// Suspends the task until the gate is open.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  public func wait() async throws {
    guard await isOpen.wait(until: { $0 }) else { throw CancellationError() }
  }

  /// Whether it is open.
  public var opened: Bool { isOpen.state }

  /// How many tasks wait.
  public var waiting: Int { isOpen.waiting }
}
